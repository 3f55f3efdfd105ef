"""Make a job of a plan on a host, start its harness, or find the one that is under way.

Invariant: starting a plan again continues its newest run while that is unfinished, unless a new one
is asked for; what an earlier run recorded is never touched.
"""

from __future__ import annotations

import datetime
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kit import prompt_files, zipapp
from kit.engine_setup import EngineSetup
from kit.home import Home
from kit.hosts import Host, Running
from records import canonical, chain
from records.decode import from_object, to_object
from records.digest import Digest
from records.errors import ChainError, FormatError, ProvisionError, RunBusyError
from records.job import Job
from records.journal import is_busy
from records.plan import Plan
from records.run_directory import RunDirectory

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Started:
    """A run under way. `log_offset`: where this start's output begins in the harness's log."""

    job: Job
    running: Running
    log_offset: int


def new_run_id(plan: Plan, now: datetime.datetime) -> str:
    """`<UTC time>-<plan>-<6 hex digits>`: sorts by time, says what it is, never met twice."""
    return f"{now:%Y%m%dT%H%M%SZ}-{plan.id}-{secrets.token_hex(3)}"


def jobs(home: Home, say: Say) -> Iterator[Job]:
    """Every job here, oldest first; one that does not decode is named and passed over."""
    for path in sorted(home.jobs.glob("*.json")):
        try:
            yield from_object(Job, canonical.decode(path.read_bytes()))
        except FormatError as error:
            say(f"passing over {path}: {error.message}")


def unfinished(home: Home, plan: Plan, say: Say) -> Job | None:
    """The newest run of exactly this plan, unless it is sealed. Older ones were given up for it."""
    found = None
    for job in jobs(home, say):
        if job.plan.digest == plan.digest:
            found = job
    if found is not None and RunDirectory(home.run(found.run_id)).is_sealed:
        return None
    return found


def running_harness(home: Home, host: Host, run_id: str) -> Running | None:
    """The harness of this run, if it runs. RunBusyError if somebody else holds the journal."""
    try:
        pid = int(_pid_file(home, run_id).read_text(encoding="ascii"))
    except FileNotFoundError:
        pid = 0
    running = host.attach(pid, str(home.job(run_id))) if pid else None
    events = RunDirectory(home.run(run_id)).events
    if running is None and events.exists() and is_busy(events):
        raise RunBusyError(
            f"run {run_id} is being written by a process that this kit did not start",
            remedy=f"wait for it: kit status {run_id}",
        )
    return running


def require_intact(events: Path) -> None:
    """ChainError unless every whole line of an unfinished journal is what was written.

    A torn last line is no edit: the harness cuts it off and says so in an event.
    """
    if not events.exists():
        return
    with events.open("rb") as file:
        try:
            chain.verify(line for line in file if line.endswith(b"\n"))
        except chain.BrokenLineError as error:
            raise ChainError(
                f"{events}: {error.message}", "its records stay as they are; begin anew with --new"
            ) from error


def make_job(home: Home, plan: Plan, run_id: str, setup: EngineSetup) -> Job:
    """The job, with every place on this host."""
    return Job(
        run_id=run_id,
        plan=plan,
        engine=setup.engine,
        models=setup.models,
        run_directory=str(home.run(run_id)),
        scratch=str(home.scratch(run_id)),
        host_salt=home.salt(),
    )


def start(home: Home, host: Host, job: Job, harness: Path) -> Started:
    """Start the harness detached; it creates or continues the run."""
    for directory in (home.runs, home.jobs, home.logs):
        directory.mkdir(parents=True, exist_ok=True)
    prompt_files.carry(home, host, job)
    path = home.job(job.run_id)
    path.write_bytes(canonical.encode(to_object(job)))
    log = home.log(job.run_id)
    offset = log.stat().st_size if log.exists() else 0
    argv = (sys.executable, "-I", "-S", str(harness), "run", str(path))
    running = host.start_detached(argv, home.path, log)
    _pid_file(home, job.run_id).write_text(f"{running.pid}\n", encoding="ascii")
    return Started(job, running, offset)


def build_harness(home: Home) -> tuple[Path, Digest]:
    """The harness archive of this source tree. ProvisionError where it has no entry."""
    if not (home.root / "remote" / "main.py").is_file():
        raise ProvisionError(f"{home.root} is not a checkout: it has no remote/main.py")
    return zipapp.build_named(home.harness, home.root)


def _pid_file(home: Home, run_id: str) -> Path:
    return home.jobs / f"{run_id}.pid"
