"""A job for a host without a network, whose engine and models were carried there by other means.

Invariant: what the job binds comes from the locks here; the host's own harness holds what is
installed there against it, before and after the run. Below its root everything lies where
records/bundle.py says, so that a bundle and a job made apart from it agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from kit.engine.models import read_model_lock
from kit.engine.setup import REFERENCE
from kit.home import Home
from records import bundle
from records.cpu_list import parse_cpus
from records.digest import Digest
from records.errors import ProvisionError
from records.job import EngineOnHost, Job, ModelOnHost
from records.plan import Plan

_SERVER = ("-m", "vllm.entrypoints.openai.api_server")


@dataclass(frozen=True, slots=True)
class OfflineHost:
    """Places on the host. `site`: directories of distributions, in the order of PYTHONPATH."""

    root: PurePosixPath
    python: PurePosixPath
    site: tuple[PurePosixPath, ...]
    client_cpus: str
    engine_cpus: str


def job_for(home: Home, plan: Plan, run_id: str, host: OfflineHost, harness: Digest) -> Job:
    """The job of one run there. ProvisionError where the plan's lock is not in images/."""
    synthetic = plan.engine.name == REFERENCE
    return Job(
        run_id=run_id,
        plan=plan,
        engine=_reference(host, harness) if synthetic else _installed(home, plan, host),
        models={
            name: ModelOnHost(name, {}) if synthetic else _model(home, name, host)
            for name in plan.models
        },
        run_directory=str(host.root / bundle.RUNS / run_id),
        scratch=str(host.root / bundle.SCRATCH),
        host_salt=home.salt(),
        client_cpus=parse_cpus(host.client_cpus),
        engine_cpus=parse_cpus(host.engine_cpus),
    )


def template_for(home: Home, plan: Plan, harness: Digest) -> Job:
    """The job with words of records/bundle.py in place of what the host decides."""
    root = PurePosixPath(bundle.ROOT_WORD)
    python = PurePosixPath(bundle.PYTHON_WORD)
    host = OfflineHost(root, python, (root / bundle.SITE,), "", "")
    return job_for(home, plan, bundle.RUN_WORD, host, harness)


def _installed(home: Home, plan: Plan, host: OfflineHost) -> EngineOnHost:
    lock = home.root / "images" / plan.engine.lock
    if not plan.engine.lock or not lock.is_file():
        raise ProvisionError(f"images/{plan.engine.lock} does not exist", "kit plan list")
    return EngineOnHost(
        runtime="installed",
        launcher=(str(host.python), *_SERVER),
        site_directories=tuple(str(s) for s in host.site),
        env={"PYTHONPATH": ":".join(str(s) for s in host.site)},
        lock=plan.engine.lock,
        lock_digest=Digest.of(lock.read_bytes()),
    )


def _reference(host: OfflineHost, harness: Digest) -> EngineOnHost:
    return EngineOnHost(
        runtime=REFERENCE,
        launcher=(str(host.python), "-I", "-S", str(host.root / bundle.HARNESS), REFERENCE),
        site_directories=(),
        env={},
        lock="",
        lock_digest=harness,
    )


def _model(home: Home, name: str, host: OfflineHost) -> ModelOnHost:
    locked = read_model_lock(home.root / "images" / "models.lock.json").model(name)
    return ModelOnHost(
        str(host.root / bundle.MODELS / name),
        {file: one.digest for file, one in locked.files.items()},
    )
