"""Make a job of a plan on a host, start its harness, or find the one that is under way.

Invariant: starting a plan again continues its newest run while that is unfinished, unless a new one
is asked for; what an earlier run recorded is never touched.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kit import zipapp
from kit.engine.setup import EngineSetup
from kit.fleet.address import spoken
from kit.home import Home
from kit.hosts.host import Host, Queued, Running
from kit.planning import prompt_files
from kit.run.host_key import note_key
from kit.run.mirror import refresh_jobs, refresh_run
from kit.run.steps import Step
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
    """A run under way. `log_offset`: where this start's output begins in the harness's log.

    `resumes`: the command that goes on with it should it be interrupted. `steps`: what it took to
    get here; `started_ns`: the host's CLOCK_MONOTONIC then. Both empty where it ran already.
    """

    job: Job
    running: Running
    log_offset: int
    resumes: str
    steps: tuple[Step, ...] = ()
    started_ns: int = 0


def new_run_id(plan: Plan, now: datetime.datetime) -> str:
    """`<UTC time>-<plan>-<6 hex digits>`: sorts by time, says what it is, never met twice."""
    return f"{now:%Y%m%dT%H%M%SZ}-{plan.id}-{secrets.token_hex(3)}"


def jobs(home: Home, say: Say) -> Iterator[Job]:
    """Every job here, oldest first; one that does not decode is named and passed over."""
    for path in sorted(home.jobs.glob("*.json")):
        try:
            yield read_job(path)
        except FormatError as error:
            say(f"passing over {path}: {error.message}")
        except OSError as error:
            say(f"passing over {path}: {error.strerror}")


def read_job(path: Path) -> Job:
    """The job in this file. FormatError where it is none, or one of another run.

    The run id becomes part of paths, and the file may be a host's.
    """
    if path.exists() and not path.is_file():
        raise FormatError(f"{path} is not a file, so no job", f"move it away: ls -ld {path}")
    job = from_object(Job, canonical.decode(path.read_bytes()))
    if job.run_id != path.stem:
        raise FormatError(
            f"{path}: its run {job.run_id[:80]!r} is not that of its file", f"move it away: {path}"
        )
    return job


def resume_command(host: Host, run_id: str) -> str:
    """What to type to go on with a run, whatever plan file it was begun with."""
    return f"kit reproduce --run {run_id} {spoken(host.name)}".rstrip()


def unfinished(home: Home, host: Host, plan: Plan, blocks: tuple[int, ...], say: Say) -> Job | None:
    """The newest run of exactly these blocks of the plan on the host, unless it is sealed.

    Older ones were given up for it. One that was closed at home is sealed there.
    """
    found = _newest(home, host, plan, blocks, say)
    if found is None or RunDirectory(host.mirror(home).run(found.run_id)).is_sealed:
        return None
    return None if RunDirectory(home.data_for(found) / found.run_id).closed else found


def left_there(home: Home, host: Host, plan: Plan, blocks: tuple[int, ...]) -> Job | None:
    """The newest run of these blocks if it was begun here, ended unwatched, and was never fetched.

    Another project's run of the same plan is another measurement: told by its salt.
    """
    found = _newest(home, host, plan, blocks, lambda _line: None)
    if found is None or found.host_salt != home.salt():
        return None
    sealed = RunDirectory(host.mirror(home).run(found.run_id)).is_sealed
    fetched = RunDirectory(home.data_for(found) / found.run_id).is_sealed
    there = host.names(host.home(home).runs)
    return found if sealed and not fetched and found.run_id in there else None


def _newest(home: Home, host: Host, plan: Plan, blocks: tuple[int, ...], say: Say) -> Job | None:
    here = refresh_jobs(host, home)
    found = None
    for job in jobs(here, say):
        if job.plan.digest == plan.digest and job.blocks == blocks:
            found = job
    if found is not None:
        refresh_run(host, home, found.run_id)
    return found


def running_harness(home: Home, host: Host, run_id: str) -> Running | None:
    """The harness of this run, if it runs. RunBusyError if somebody else holds the journal here."""
    there = host.home(home)
    running = host.attach(_note(there, run_id), str(there.job(run_id)))
    events = RunDirectory(there.run(run_id)).events
    # A container outlives its keeper; the next one takes it over.
    kept = there.container(run_id).exists()
    if running is None and there == home and not kept and events.is_file() and is_busy(events):
        raise RunBusyError(
            f"run {run_id} is being written by a process that this kit did not start",
            remedy=f"wait for it: kit status {run_id}",
        )
    return running


def is_under_way(home: Home, host: Host, run_id: str) -> bool:
    """Whether somebody writes this run now: any process here, the kit's own on another host."""
    there = host.home(home)
    if host.attach(_note(there, run_id), str(there.job(run_id))) is not None:
        return True
    if there != home:
        return False
    events = RunDirectory(home.run(run_id)).events
    return events.is_file() and is_busy(events)


def is_queued(home: Home, host: Host, run_id: str) -> bool:
    """Whether a scheduler has taken this run in and has no machine for it now."""
    there = host.home(home)
    running: object = host.attach(_note(there, run_id), str(there.job(run_id)))
    return isinstance(running, Queued) and running.waits


def require_intact(events: Path) -> None:
    """ChainError unless every whole line of an unfinished journal is what was written.

    A torn last line is no edit: the harness cuts it off and says so in an event.
    """
    if not events.exists():
        return
    if not events.is_file():
        raise ChainError(f"{events} is not a file, so no journal", "begin anew with --new")
    with events.open("rb") as file:
        try:
            chain.verify(line for line in chain.lines_of(file) if line.endswith(b"\n"))
        except chain.BrokenLineError as error:
            raise ChainError(
                f"{events}: {error.message}", "its records stay as they are; begin anew with --new"
            ) from error


def make_job(
    home: Home, host: Host, plan: Plan, run_id: str, setup: EngineSetup, blocks: tuple[int, ...]
) -> Job:
    """The job, with every place on the host."""
    there, salt = host.home(home), home.salt()
    return Job(
        run_id=run_id,
        plan=plan,
        engine=setup.engine,
        models=setup.models,
        run_directory=str(there.run(run_id)),
        scratch=str(there.scratch(run_id)),
        host_salt=salt,
        client_cpus=host.spec.client_cpus,
        engine_cpus=host.spec.engine_cpus,
        blocks=blocks,
        place=Digest.of(f"{salt}\0{host.place}".encode()).hex[:12] if host.place else "",
        private_names=host.private_names,
    )


def start(home: Home, host: Host, job: Job, harness: Path) -> Started:
    """Start the harness detached; it creates or continues the run. `harness`: on the host."""
    there, here = host.home(home), host.mirror(home)
    for directory in (here.runs, here.jobs, here.logs):
        directory.mkdir(parents=True, exist_ok=True)
    prompt_files.carry(home, host, job)
    path = here.job(job.run_id)
    path.write_bytes(canonical.encode(to_object(job)))
    if there != here:
        host.put(path, there.job(job.run_id))
    refresh_run(host, home, job.run_id)
    note_key(home, host, job.run_id)
    log = here.log(job.run_id)
    offset = log.stat().st_size if log.exists() else 0
    argv = (host.python, "-I", "-S", str(harness), *_verb(there, job), str(there.job(job.run_id)))
    running = host.start_detached(argv, there.path, there.log(job.run_id), _note(there, job.run_id))
    return Started(job, running, offset, resume_command(host, job.run_id))


def bring_harness(home: Home, host: Host, harness: Path) -> Path:
    """Where the harness archive stands on the host, brought there if need be."""
    target = host.home(home).harness / harness.name
    if target != harness:
        host.put(harness, target)
    return target


def build_harness(home: Home) -> tuple[Path, Digest]:
    """The harness archive of this source tree. ProvisionError where it has no entry."""
    if not (home.root / "remote" / "main.py").is_file():
        raise ProvisionError(f"{home.root} is not a checkout: it has no remote/main.py")
    return zipapp.build_named(home.harness, home.root)


def _verb(there: Home, job: Job) -> tuple[str, ...]:
    """Run the job, or keep the container in which it runs."""
    if job.engine.runtime == "docker":
        return ("contain", str(there.container(job.run_id) / "container.json"))
    return ("run",)


def _note(there: Home, run_id: str) -> Path:
    return there.jobs / f"{run_id}.pid"
