"""The main job up to the records: preflight, engine, models, harness, run, records brought home.

Invariant: each step is skipped only when its result was verified to be there; a run of the same
plan that has not ended is continued, never started beside.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kit.docker.choice import DockerChoice
from kit.docker.setup import bring_container, set_up_engine, set_up_models
from kit.docker.verify import is_running
from kit.doctor.examine import require_sound
from kit.doctor.needs import needs_in_image, needs_of, on_host
from kit.doctor.topic import DOCKER, WHEELS
from kit.engine import setup as engine_setup
from kit.engine.setup import EngineSetup
from kit.home import Home
from kit.hosts.host import Host
from kit.planning import preflight
from kit.run.fetch import Fetched, fetch_run
from kit.run.follow import Ending, Watch, follow
from kit.run.host_key import other_key
from kit.run.launch import (
    Say,
    Started,
    bring_harness,
    build_harness,
    left_there,
    make_job,
    new_run_id,
    require_intact,
    resume_command,
    running_harness,
    start,
    unfinished,
)
from kit.run.state import read_state
from kit.run.steps import Step, Stopwatch, to_first_window
from records.errors import BootsFailedError, ProvisionError
from records.job import Job
from records.plan import Plan
from records.run_directory import RunDirectory

Blocks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reproduced:
    """A run that has ended and whose records are here.

    `steps`: from the command to the first measured window; none where it was resumed or attached.
    """

    ending: Ending
    fetched: Fetched
    tables: Path
    steps: tuple[Step, ...] = ()


def require_complete(ending: Ending) -> None:
    """BootsFailedError where a planned boot failed."""
    if ending.failed:
        raise BootsFailedError(
            f"run {ending.run_id}: {ending.failed} of {ending.failed + ending.completed} "
            "boots failed",
            remedy=f"read the causes: kit status {ending.run_id}",
        )


def reproduce(
    home: Home,
    host: Host,
    plan: Plan,
    say: Say,
    *,
    new: bool = False,
    blocks: Blocks = (),
    docker: DockerChoice | None = None,
    resume: Job | None = None,
) -> Reproduced:
    """Carry the plan out on the host, or finish it, and bring the records home.

    A run that was begun here and ended while nobody watched is brought home, not done again.
    """
    ended = None if new or resume else left_there(home, host, plan, blocks)
    if ended is not None:
        say(f"run {ended.run_id} has ended meanwhile: bringing it home (--new begins another)")
        state = read_state(RunDirectory(host.mirror(home).run(ended.run_id)).events)
        ending = Ending(ended.run_id, state.done - state.failed, state.failed)
        return Reproduced(ending, bring_home(home, host, ended, say), home.tables_for(ended))
    started, watch = begin(
        home, host, plan, say, new=new, blocks=blocks, docker=docker, resume=resume
    )
    ending = follow(host.mirror(home), started, watch, say)
    fetched = bring_home(home, host, started.job, say)
    steps = _steps(started, fetched, say)
    return Reproduced(ending, fetched, home.tables_for(started.job), steps)


def _steps(started: Started, fetched: Fetched, say: Say) -> tuple[Step, ...]:
    """Where the time went up to the first window, said on one line."""
    if not started.started_ns:
        return ()
    events = RunDirectory(fetched.directory).events
    there = tuple(to_first_window(events, started.started_ns))
    steps = (*started.steps, *there) if there else ()
    if steps:
        told = ", ".join(f"{step.what} {step.took_ns / 1e9:.1f}" for step in steps)
        say(f"first window after {sum(s.took_ns for s in steps) / 1e9:.1f} s: {told}")
    return steps


def begin(
    home: Home,
    host: Host,
    plan: Plan,
    say: Say,
    *,
    new: bool = False,
    blocks: Blocks = (),
    docker: DockerChoice | None = None,
    resume: Job | None = None,
) -> tuple[Started, Watch]:
    """Attach to the plan's run if it is under way; otherwise resume it, or start one.

    `new` gives an unfinished run up, but never one that is under way. `resume`: go on with exactly
    this run. `blocks`: of the plan, empty for all. `docker`: the image in which to run; None for
    the wheels runtime.
    """
    stopwatch = Stopwatch()
    here = host.mirror(home)
    host.home(home)
    stopwatch.lap("reach the host")
    old = resume or unfinished(home, host, plan, blocks, say)
    running = watch = None
    if old is not None:
        running = running_harness(home, host, old.run_id)
        if new and running is None:
            say(f"giving up unfinished run {old.run_id}; its records stay")
            old = None
    if old is not None:
        require_intact(RunDirectory(here.run(old.run_id)).events)
        watch = Watch.begin(home, host, old.run_id)
        if running is not None:
            say(f"run {old.run_id} is under way, {watch.state.progress}: attaching")
            log = here.log(old.run_id)
            offset = log.stat().st_size if log.exists() else 0
            return Started(old, running, offset, resume_command(host, old.run_id)), watch
        _require_same_runtime(old, docker)
        say(f"resuming unfinished run {old.run_id}, {watch.state.progress}")
    stopwatch.lap("look for a run under way")
    job, harness = prepare(
        home, host, plan, old.run_id if old else "", say, blocks, docker, stopwatch.lap
    )
    watch = watch or Watch.begin(home, host, job.run_id)
    started = start(home, host, job, harness)
    stopwatch.lap("start the harness")
    started = replace(started, steps=tuple(stopwatch.steps), started_ns=host.monotonic_ns())
    say(f"harness started, process {started.running.pid}; it goes on if this terminal closes")
    return started, watch


def _require_same_runtime(old: Job, docker: DockerChoice | None) -> None:
    """What was begun in one runtime is not one measurement with what goes on in another."""
    want, got = old.engine.runtime == DOCKER, docker is not None
    if want != got:
        raise ProvisionError(
            f"run {old.run_id} was begun in the runtime {old.engine.runtime}",
            f"--runtime {DOCKER if want else WHEELS}, or begin anew with --new",
        )


def _no_lap(_what: str) -> None:
    """Nobody wants to know."""


def prepare(
    home: Home,
    host: Host,
    plan: Plan,
    run_id: str,
    say: Say,
    blocks: Blocks = (),
    docker: DockerChoice | None = None,
    lap: Callable[[str], None] = _no_lap,
) -> tuple[Job, Path]:
    """Everything before the start: a fit host, engine, models and harness archive there.

    `lap` hears the name of each step as it ends.
    """
    engine_setup.require_locked(home, plan)
    _require_fit(home, host, plan, docker, run_id)
    lap("examine the host")
    archive, digest = build_harness(home)
    harness = bring_harness(home, host, archive)
    say(f"harness {digest}")
    lap("bring the harness")
    if docker is None:
        setup = engine_setup.set_up(home, host, plan, harness, digest, say)
    else:
        setup = EngineSetup(set_up_engine(plan, docker), set_up_models(home, host, plan, say))
    lap("engine and models")
    now = datetime.datetime.now(datetime.timezone.utc)
    job = make_job(home, host, plan, run_id or new_run_id(plan, now), setup, blocks)
    if docker is not None:
        bring_container(home, host, job, harness, docker, say)
        lap("image and container")
    return job, harness


def _require_fit(
    home: Home, host: Host, plan: Plan, docker: DockerChoice | None, run_id: str
) -> None:
    there = host.home(home)
    if docker is not None:
        # A container that outlived its keeper goes on; what is on the GPU now is its own.
        if run_id and is_running(host, run_id):
            return
        needs = needs_in_image(home, plan, docker)
        require_sound(host, there.path, plan, on_host(needs, host, there))
        return
    preflight.require_fit(
        engine_setup.with_what_is_brought(host, plan, host.probe(there.path)),
        plan,
        engine_setup.needs(plan),
        host.used_mib((there.engine, there.models)),
    )
    needs = needs_of(home, plan, WHEELS)
    if needs.gpu and not run_id:
        # Begun again, it ends by itself what its harness may have left on the GPU.
        require_sound(host, there.path, plan, on_host(needs, host, there))


def bring_home(home: Home, host: Host, job: Job, say: Say) -> Fetched:
    """Fetch the records of a job's run to where they belong."""
    if warning := other_key(home, host, job.run_id):
        say(warning)
    source, data = host.home(home).run(job.run_id), home.data_for(job)
    fetched = fetch_run(host, source, data, host.mirror(home), say)
    what = "sealed, verified" if fetched.sealed else "unfinished, verified so far"
    say(f"records of {fetched.run_id}: {fetched.directory} ({what}, {fetched.new_bytes} bytes new)")
    return fetched
