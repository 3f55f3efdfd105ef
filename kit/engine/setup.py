"""The engine and the models of a plan, made ready on a host from their locks.

Invariant: what is returned was verified against a lock; the reference server, which no lock
describes, is bound by the harness archive that it comes in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kit.engine import provision
from kit.engine.hub_download import require_token
from kit.engine.hub_token import find_token
from kit.engine.models import ModelLock, materialise, needs_token, read_model_lock
from kit.engine.wheels import install_engine, site_packages
from kit.home import Home
from kit.hosts.facts import HostFacts
from kit.hosts.host import Host
from records.digest import Digest
from records.errors import PlanError, ProvisionError
from records.job import EngineOnHost, ModelOnHost
from records.plan import Plan

REFERENCE = "reference"
WHEELS = "wheels"
INSTALLED = "installed"
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


def require_version(lock: str, plan: Plan) -> None:
    """PlanError where the lock pins another version of the engine than the plan is for."""
    pinned = re.search(r"^vllm(?:-cpu)?==([^\s\\;]+)", lock, re.MULTILINE)
    if pinned and pinned[1] != plan.engine.version:
        raise PlanError(
            f"plan {plan.id} is for vLLM {plan.engine.version}, "
            f"images/{plan.engine.lock} holds {pinned[1]}",
            remedy="name the lock of that version in the plan, or correct the version",
        )


def needs(plan: Plan) -> frozenset[str]:
    """Programs that the engine calls while it runs: without --enforce-eager it compiles C++."""
    compiles = any("--enforce-eager" not in arm.args for arm in plan.arms)
    return frozenset({"g++"} if compiles and plan.engine.name != REFERENCE else ())


def with_what_is_brought(host: Host, plan: Plan, facts: HostFacts) -> HostFacts:
    """The facts of a host once the kit has brought what it can bring: uv, and with it a Python."""
    needless = plan.engine.name == REFERENCE or bool(host.spec.site)
    brought = needless or provision.can_bring_uv(host, facts)
    return replace(facts, tools=facts.tools | {"uv"}) if brought else facts


def set_up(
    home: Home, host: Host, plan: Plan, harness: Path, digest: Digest, say: Callable[[str], None]
) -> EngineSetup:
    """Install what is missing and verify the rest. `harness`: on the host.

    ProvisionError where that cannot be done.
    """
    if plan.engine.name == REFERENCE:
        return _reference(host, plan, harness, digest)
    lock_path = home.root / "images" / plan.engine.lock
    if not plan.engine.lock.startswith("wheels") or not lock_path.is_file():
        raise ProvisionError(
            f"plan {plan.id} takes its engine from images/{plan.engine.lock}, "
            "from which this version cannot install",
            remedy="use a plan with a wheel lock: kit plan list",
        )
    require_version(lock_path.read_text(encoding="utf-8"), plan)
    there, lock = host.home(home), _model_lock(home)
    if host.spec.site:
        return _installed(home, host, plan, lock_path)
    token = hub_token_for(home, host, plan)
    if there != home:
        ready = provision.on_host(home, host, plan, say, token)
        engine = _wheels(ready.python, ready.site, plan.engine.lock, ready.lock_digest)
        return EngineSetup(engine, {m: _model(m, lock, there.models / m) for m in plan.models})
    installed = install_engine(lock_path, home.engine, say)
    say(f"engine {'was installed already' if installed.reused else 'installed'}: {home.engine}")
    models = {}
    for name in plan.models:
        path = materialise(name, lock, installed.python, home.models, say, token)
        say(f"model {name}: every file is the locked one")
        models[name] = _model(name, lock, path)
    site = site_packages(home.engine)
    engine = _wheels(str(installed.python), str(site), plan.engine.lock, installed.lock_digest)
    return EngineSetup(engine, models)


def hub_token_for(home: Home, host: Host, plan: Plan) -> str:
    """The hub's token where a gated model is not on the host yet; "" where none is needed.

    ProvisionError, before anything is installed, where there is none.
    """
    models = host.home(home).models
    gated = needs_token(_model_lock(home), (m for m in plan.models if not host.names(models / m)))
    token = find_token(os.environ) if gated else ""
    for hub in gated:
        require_token(hub, token)
    return token


def _installed(home: Home, host: Host, plan: Plan, lock_path: Path) -> EngineSetup:
    """What somebody installed there, bound by the harness; models that are here are carried."""
    there, lock, models = host.home(home), _model_lock(home), {}
    for name in plan.models:
        if (home.models / name).is_dir():
            host.put(home.models / name, there.models / name)
        models[name] = _model(name, lock, there.models / name)
    engine = EngineOnHost(
        runtime=INSTALLED,
        launcher=(host.spec.engine_python, *_SERVER),
        site_directories=host.spec.site,
        env={"PYTHONPATH": ":".join(host.spec.site)},
        lock=plan.engine.lock,
        lock_digest=Digest.of(lock_path.read_bytes()),
    )
    return EngineSetup(engine, models)


def _wheels(python: str, site: str, lock: str, lock_digest: Digest) -> EngineOnHost:
    return EngineOnHost(
        runtime=WHEELS,
        launcher=(python, *_SERVER),
        site_directories=(site,),
        env={},
        lock=lock,
        lock_digest=lock_digest,
    )


def _model(name: str, lock: ModelLock, path: Path) -> ModelOnHost:
    files = {file: locked.digest for file, locked in lock.model(name).files.items()}
    return ModelOnHost(str(path), files)


def _model_lock(home: Home) -> ModelLock:
    return read_model_lock(home.root / "images" / "models.lock.json")


def _reference(host: Host, plan: Plan, harness: Path, digest: Digest) -> EngineSetup:
    engine = EngineOnHost(
        runtime=REFERENCE,
        launcher=(host.python, "-I", "-S", str(harness), REFERENCE),
        site_directories=(),
        env={},
        lock="",
        lock_digest=digest,
    )
    return EngineSetup(engine, {name: ModelOnHost(name, {}) for name in plan.models})
