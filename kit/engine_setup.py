"""The engine and the models of a plan, made ready on this machine from their locks.

Invariant: what is returned was verified against a lock; the reference server, which no lock
describes, is bound by the harness archive that it comes in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kit.home import Home
from kit.models import ModelLock, materialise, read_model_lock
from kit.wheels import EngineEnvironment, install_engine
from records.digest import Digest
from records.errors import ProvisionError
from records.job import EngineOnHost, ModelOnHost
from records.plan import Plan

REFERENCE = "reference"
WHEELS = "wheels"
_SERVER = ("-m", "vllm.entrypoints.openai.api_server")


@dataclass(frozen=True, slots=True)
class EngineSetup:
    """What a job says of the engine and its models."""

    engine: EngineOnHost
    models: dict[str, ModelOnHost]


def require_locked(home: Home, plan: Plan) -> None:
    """UnlockedModelError for the first model of the plan that the lock does not hold."""
    if plan.engine.name != REFERENCE:
        lock = _model_lock(home)
        for model in plan.models:
            lock.model(model)


def needs(plan: Plan) -> frozenset[str]:
    """Programs that the engine calls while it runs: without --enforce-eager it compiles C++."""
    compiles = any("--enforce-eager" not in arm.args for arm in plan.arms)
    return frozenset({"g++"} if compiles and plan.engine.name != REFERENCE else ())


def installed_mib(home: Home) -> int:
    """What the engine and the models take up already."""
    total = 0
    for top in (home.engine, home.models):
        for directory, _, names in os.walk(top):
            total += sum((Path(directory) / name).lstat().st_blocks * 512 for name in names)
    return total >> 20


def set_up(
    home: Home, plan: Plan, harness: Path, digest: Digest, say: Callable[[str], None]
) -> EngineSetup:
    """Install what is missing and verify the rest. ProvisionError where that cannot be done."""
    if plan.engine.name == REFERENCE:
        return _reference(plan, harness, digest)
    lock_path = home.root / "images" / plan.engine.lock
    if not plan.engine.lock.startswith("wheels") or not lock_path.is_file():
        raise ProvisionError(
            f"plan {plan.id} takes its engine from images/{plan.engine.lock}, "
            "from which this version cannot install",
            remedy="use a plan with a wheel lock: kit plan list",
        )
    installed = install_engine(lock_path, home.engine, say)
    say(f"engine {'was installed already' if installed.reused else 'installed'}: {home.engine}")
    lock = _model_lock(home)
    models = {name: _model(name, lock, installed.python, home.models, say) for name in plan.models}
    return EngineSetup(_wheels(home, installed, plan.engine.lock), models)


def _wheels(home: Home, installed: EngineEnvironment, lock: str) -> EngineOnHost:
    site = sorted((home.engine / "lib").glob("python3.*/site-packages"))
    if len(site) != 1:
        raise ProvisionError(
            f"{home.engine} has {len(site)} site-packages, want one",
            remedy=f"rm -r {home.engine}; then: make reproduce",
        )
    return EngineOnHost(
        runtime=WHEELS,
        launcher=(str(installed.python), *_SERVER),
        site_directories=(str(site[0]),),
        env={},
        lock=lock,
        lock_digest=installed.lock_digest,
    )


def _model(
    name: str, lock: ModelLock, python: Path, directory: Path, say: Callable[[str], None]
) -> ModelOnHost:
    path = materialise(name, lock, python, directory, say)
    say(f"model {name}: every file is the locked one")
    files = {file: locked.digest for file, locked in lock.model(name).files.items()}
    return ModelOnHost(str(path), files)


def _model_lock(home: Home) -> ModelLock:
    return read_model_lock(home.root / "images" / "models.lock.json")


def _reference(plan: Plan, harness: Path, digest: Digest) -> EngineSetup:
    engine = EngineOnHost(
        runtime=REFERENCE,
        launcher=(sys.executable, "-I", "-S", str(harness), REFERENCE),
        site_directories=(),
        env={},
        lock="",
        lock_digest=digest,
    )
    return EngineSetup(engine, {name: ModelOnHost(name, {}) for name in plan.models})
