"""One run: the journal opened or resumed, host and engine bound, every remaining boot, the seal.

Invariant: no boot is started before host, engine and models are bound and the client calibrated in
this same process; whatever stops the run, the same job continues it at the next boot.
"""

from __future__ import annotations

import os
import platform
import pwd
import socket
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from records import canonical, schema
from records.cache_listing import WARM
from records.decode import from_object, to_object
from records.digest import Digest
from records.errors import (
    BootsFailedError,
    ClosedRunError,
    ForeignDirectoryError,
    FormatError,
)
from records.job import Job
from records.journal import Journal
from records.plan import PlannedBoot
from records.run_directory import RunDirectory
from records.seal import write_seal
from remote import leftover, spot_notice
from remote.allocation import observe as observe_allocation
from remote.binding import bind_engine, bind_models
from remote.boot import BootIdentity, run_boot
from remote.calibration import calibrate
from remote.container import apptainer
from remote.container.attestation import ask, reason_from_outside
from remote.context import Context
from remote.engine.adapter import Adapter
from remote.engine.adapters import ADAPTERS
from remote.filling import arms_to_fill
from remote.host.facts import probe
from remote.host.processors import time_where_allowed
from remote.host_lock import sole_run_of
from remote.install.carried_cache import require_placed
from remote.interruption import Interruption
from remote.lease import Lease
from remote.progress import Progress
from remote.prompts.source import request_source

# How often an arm's caches are tried to be filled, where its boots fail: each may take minutes.
_TRIES_TO_FILL = 2


def main(job_path: str) -> int:
    """Carry out the job in this file; 0, or BootsFailedError's code where a boot failed."""
    job = from_object(Job, canonical.decode(Path(job_path).read_bytes()))
    interruption = Interruption(job.run_id, partial(reason_from_outside, job.engine))
    interruption.install()
    spot_notice.watch(interruption.explain, spot_notice.cloud())
    try:
        progress = carry_out(job, interruption, Path(sys.argv[0]))
    finally:
        interruption.settle()
    if progress.failed:
        print(f"{progress.failed} of the planned boots failed", file=sys.stderr)
        return BootsFailedError.exit_code
    return 0


def carry_out(job: Job, interruption: Interruption, harness: Path) -> Progress:
    """Bring the run to its end and seal it; returns at once if it is sealed already."""
    directory = RunDirectory(Path(job.run_directory))
    if directory.is_sealed:
        return Progress.of(directory.read())
    Path(job.scratch).mkdir(parents=True, exist_ok=True)
    directory.path.mkdir(parents=True, exist_ok=True)
    harness_digest = _digest_of(harness)
    with sole_run_of(job), _open(directory) as journal:
        progress = Progress.of(directory.read())
        if progress.closed:
            raise ClosedRunError(
                f"run {job.run_id} was closed: its host was taken for gone",
                "its blocks that are missing belong to another run: kit reproduce --new",
            )
        context = Context(
            job, journal, _adapter(job), interruption, harness_digest, _private_names(job)
        )
        _begin(context, progress)
        if progress.cache_gone:  # what was carried here is not what boots find from then on
            context = replace(context, job=replace(job, cache=None))
        if not progress.ended:
            _measure(context, progress)
        state = journal.state
        with interruption.shield():
            write_seal(directory.path, job.run_id, state)
    context.say(f"run {job.run_id}: sealed")
    return progress


def _open(directory: RunDirectory) -> Journal:
    if directory.events.exists():
        return Journal.resume(directory.events)
    strangers = [p.name for p in directory.path.iterdir()]
    if strangers:
        raise ForeignDirectoryError(
            f"{directory.path} holds {strangers[0]!r} but no journal: it is not a run",
            remedy="name a new or empty directory",
        )
    return Journal.create(directory.events)


def _begin(context: Context, progress: Progress) -> None:
    """Record that the run starts or goes on, and end a boot that died with its harness."""
    job = context.job
    killed = leftover.end(context.scratch)  # of whatever run: it would be measured beside
    if killed:
        context.say(f"{killed} processes that a killed harness left were ended")
    if progress.started is None:
        started = schema.RunStarted(
            format=schema.FORMAT,
            run_id=job.run_id,
            synthetic=job.synthetic,
            plan=job.plan,
            plan_digest=job.plan.digest,
            harness_digest=context.harness,
            python=platform.python_version(),
            clock=context.clock(),
            blocks=job.blocks,
        )
        context.record(started)
        progress.see(started)
        return
    if progress.started.plan_digest != job.plan.digest:
        raise FormatError(
            f"run {job.run_id} follows plan {progress.started.plan_digest}, "
            f"the job asks for {job.plan.digest}",
            remedy="start a new run for a changed plan",
        )
    if progress.started.blocks != job.blocks:
        raise FormatError(
            f"run {job.run_id} carries out blocks {progress.started.blocks}, the job {job.blocks}",
            remedy="start a new run for other blocks",
        )
    used = progress.primed or (job.cache and (progress.attempts or progress.priming_attempts))
    gone = bool(used) and not (context.scratch / WARM).is_dir()
    if gone:
        context.say("the warm cache of this run is not on this host: it is filled again")
    resumed = schema.RunResumed(context.harness, progress.open_boot, context.clock(), gone)
    context.record(resumed)
    progress.see(resumed)
    if progress.open_boot:
        cause = f"the harness died in this boot; {killed} processes it left were ended on resume"
        ended = schema.BootEnded(progress.open_boot, "interrupted", cause, "", {}, {})
        context.record(ended)
        progress.see(ended)


def _measure(context: Context, progress: Progress) -> None:
    remaining = progress.remaining(context.plan)
    left_out: tuple[int, ...] = ()
    if remaining:
        _require_prompts(context)
        phase = "start" if not progress.attempts else "resume"
        _observe(context, phase)
        began_s = time.monotonic()
        _bind(context, "before")
        binding_s = time.monotonic() - began_s
        calibrate(context)
        _require_cache(context, progress)
        left_out = _boots(context, progress, remaining, binding_s)
    _bind(context, "after")
    _observe(context, "end")
    ended = schema.RunEnded(
        completed=progress.completed,
        failed=progress.failed,
        modules=tuple(sorted({name.partition(".")[0] for name in sys.modules})),
        clock=context.clock(),
        left_out=left_out,
    )
    context.record(ended)
    progress.see(ended)


def _boots(
    context: Context, progress: Progress, remaining: list[PlannedBoot], binding_s: float
) -> tuple[int, ...]:
    """The planned boots, block by block; the blocks that the host's time does not hold.

    A block's arms have their caches filled right before its first boot: a block that is left out
    costs nothing.
    """
    lease = Lease(context.plan, context.job.ends_unix_s, binding_s)
    if lease.ends_unix_s:  # else every block fits, and a long journal is decoded for nothing
        lease.recall(RunDirectory(context.records).read())
    failures: Counter[str] = Counter()
    block = 0
    for boot in remaining:
        if boot.block != block:
            block = boot.block
            left_out = _fill_while_it_fits(context, progress, lease, boot, remaining, failures)
            if left_out:
                listed = ", ".join(map(str, left_out))
                context.say(f"the host goes back too soon for blocks {listed}: left out")
                return left_out
        boot_id, attempt = progress.next_attempt(boot)
        began_s = time.monotonic()
        outcome = run_boot(context, BootIdentity(boot_id, boot.id, attempt, boot.arm))
        lease.took(boot.arm, time.monotonic() - began_s, outcome)
        progress.outcomes[boot.id] = outcome
    return ()


def _fill_while_it_fits(
    context: Context,
    progress: Progress,
    lease: Lease,
    boot: PlannedBoot,
    remaining: Sequence[PlannedBoot],
    failures: Counter[str],
) -> tuple[int, ...]:
    """Fill the caches of the block that this boot begins; the blocks to leave out instead, if any.

    Asked before every boot that fills one: the last may have taken longer than was reckoned with,
    or have told that a carried cache does not serve, and that there are more to fill. An arm
    whose boot failed is tried again before its next block, and then given up.
    """
    needed = {one.arm for one in remaining if one.block == boot.block}
    needed -= {arm for arm, count in failures.items() if count >= _TRIES_TO_FILL}
    while True:
        unfilled = arms_to_fill(context.plan, context.job.cache, progress, needed)
        left_out = lease.left_out(boot, progress.attempts, remaining, unfilled)
        if left_out or not unfilled:
            return left_out
        began_s = time.monotonic()
        if _prime(context, progress, unfilled[0]) == "completed":
            lease.took_first(unfilled[0], time.monotonic() - began_s)
        else:
            failures[unfilled[0]] += 1
        needed.discard(unfilled[0])


def _require_cache(context: Context, progress: Progress) -> None:
    """Hold a carried cache against its listing before the first boot."""
    carried = context.job.cache
    if carried is not None and not progress.attempts and not progress.priming_attempts:
        context.say("holding the carried cache against its listing")
        require_placed(context.scratch, carried.digest)


def _prime(context: Context, progress: Progress, arm: str) -> str:
    """Fill the warm caches by an unmeasured boot of an arm; measured boots then start alike."""
    number = progress.priming_attempts.get(arm, 0) + 1
    name = f"prime-{arm}" if number == 1 else f"prime-{arm}.{number}"
    outcome = run_boot(context, BootIdentity(name, "", number, arm))
    seen = Progress.of(RunDirectory(context.records).read())
    progress.primed, progress.compiled = seen.primed, seen.compiled
    progress.priming_attempts = seen.priming_attempts
    return outcome


def _require_prompts(context: Context) -> None:
    """PlanError or BindingError, before anything is started, for prompts that do not fit."""
    for window in context.plan.windows:
        request_source(window, window.id, context.prompts)


def _observe(context: Context, phase: str) -> None:
    job = context.job
    facts = probe(job.host_salt, context.records, place=job.place)
    if phase != "end":  # before anything else works there
        context.say("timing the processors, each alone and together")
        timed = time_where_allowed(job.engine_cpus, job.client_cpus, context.say)
        facts = replace(facts, processors=timed)
    context.record(schema.HostObserved(phase, facts.host_id, to_object(facts)))
    allocation = observe_allocation(phase, job.host_salt, context.records, os.environ)
    if allocation is not None:
        context.record(allocation)


def _bind(context: Context, phase: str) -> None:
    context.say(f"binding the engine ({phase})")
    engine = context.job.engine
    if engine.runtime == "reference":  # it comes in the harness archive and is bound with it
        bound = schema.EngineBound(phase, engine.runtime, context.harness, "", context.harness, {})
    elif engine.runtime == "docker":
        bound = ask(engine, phase, context.say)
        bound = replace(bound, facts=context.redact_value(bound.facts))
    elif engine.runtime == apptainer.RUNTIME:
        bound = apptainer.bind(engine, phase)
    else:
        bound = bind_engine(engine, phase)
    context.record(bound)
    for event in bind_models(context.job.models, phase):
        context.record(event)


def _digest_of(harness: Path) -> Digest:
    if not harness.is_file():
        raise FormatError(
            f"{harness} is not a harness archive: what is not bound by digest does not measure",
            remedy="kit reproduce  (it builds the archive)",
        )
    with harness.open("rb") as file:
        return Digest.of_file(file)


def _adapter(job: Job) -> Adapter:
    if job.synthetic:
        return ADAPTERS["reference"]
    if job.engine.runtime not in ADAPTERS:
        raise FormatError(f"runtime {job.engine.runtime!r} is none of {', '.join(ADAPTERS)}")
    return ADAPTERS[job.engine.runtime]


def _private_names(job: Job) -> tuple[str, ...]:
    """What must not reach a record: this host's names, the user's, and what the job adds."""
    host = socket.gethostname()
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in a container the user of the host may have no name
        user = "root"
    return tuple({host, host.partition(".")[0], user, *job.private_names} - {"root", "localhost"})
