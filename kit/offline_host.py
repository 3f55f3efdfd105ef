"""A job for a host without a network, whose engine and models were carried there by other means.

Invariant: what the job binds comes from the locks here; the host's own harness holds what is
installed there against it, before and after the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from kit.home import Home
from kit.models import read_model_lock
from records.digest import Digest
from records.errors import PlanError, ProvisionError
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


def job_for(home: Home, plan: Plan, run_id: str, host: OfflineHost) -> Job:
    """The job of one run there. ProvisionError where the plan's lock is not in images/."""
    lock = home.root / "images" / plan.engine.lock
    if not plan.engine.lock or not lock.is_file():
        raise ProvisionError(f"images/{plan.engine.lock} does not exist", "kit plan list")
    models = read_model_lock(home.root / "images" / "models.lock.json")
    return Job(
        run_id=run_id,
        plan=plan,
        engine=EngineOnHost(
            runtime="installed",
            launcher=(str(host.python), *_SERVER),
            site_directories=tuple(str(s) for s in host.site),
            env={"PYTHONPATH": ":".join(str(s) for s in host.site)},
            lock=plan.engine.lock,
            lock_digest=Digest.of(lock.read_bytes()),
        ),
        models={
            name: ModelOnHost(
                str(host.root / "models" / name),
                {file: locked.digest for file, locked in models.model(name).files.items()},
            )
            for name in plan.models
        },
        run_directory=str(host.root / "runs" / run_id),
        scratch=str(host.root / "scratch"),
        host_salt=home.salt(),
        client_cpus=parse_cpus(host.client_cpus),
        engine_cpus=parse_cpus(host.engine_cpus),
    )


def parse_cpus(text: str) -> tuple[int, ...]:
    """Read a list of processors such as "0-3,8" (cpuset(7), "List format"); "" is no list."""
    cpus: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise PlanError(f"not a list of processors: {text!r}", "write it as in 0-3,8")
        cpus.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(cpus))
