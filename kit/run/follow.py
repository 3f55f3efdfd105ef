"""Watch a run until its harness ends, and say what became of it.

Invariant: the verdict comes from the records where there are any; the harness's exit status only
explains why there is no seal.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from kit.home import Home
from kit.hosts.host import Host
from kit.run.follow_log import harness_error
from kit.run.launch import Started
from kit.run.mirror import refresh_run
from kit.run.state import JournalTail, RunState
from records.errors import InterruptedRunError
from records.run_directory import RunDirectory

_POLL_S = 0.5
_QUIET_S = 30.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How a sealed run ended."""

    run_id: str
    completed: int
    failed: int


@dataclass(slots=True)
class Watch:
    """A journal being followed. What stood in it when the watch began is not shown again."""

    tail: JournalTail
    refresh: Callable[[], None]
    now_ns: Callable[[], int]
    state: RunState = field(default_factory=RunState)

    @classmethod
    def begin(cls, home: Home, host: Host, run_id: str) -> Watch:
        """Take in what the run holds already."""
        tail = JournalTail(RunDirectory(host.mirror(home).run(run_id)).events)
        watch = cls(tail, partial(refresh_run, host, home, run_id), host.monotonic_ns)
        for _ in watch.lines():
            pass
        return watch

    def lines(self) -> Iterator[str]:
        """The lines worth showing since the last call."""
        self.refresh()
        for envelope in self.tail.new_events():
            line = self.state.see(envelope)
            if line:
                yield line


def follow(home: Home, started: Started, watch: Watch, say: Callable[[str], None]) -> Ending:
    """Show progress until the end. Ctrl-C stops the run in order: InterruptedRunError.

    A second Ctrl-C leaves it to stop by itself. `home`: where journal and log of the run can be
    read here.
    """
    try:
        status = _until_exit(started, watch, say)
    except KeyboardInterrupt:
        try:
            say(
                "interrupted: asking the harness to mark its boot and stop (Ctrl-C again leaves it)"
            )
            started.running.interrupt()
            status = _until_exit(started, watch, say)
        except KeyboardInterrupt:
            raise _left_alone(started) from None
    return conclude(home, started, watch.state, status)


def _left_alone(started: Started) -> InterruptedRunError:
    run_id = started.job.run_id
    # The command that resumes names the host; so must the one that stops.
    host = started.resumes.partition(run_id)[2]
    return InterruptedRunError(
        f"run {run_id} was left: its harness (process {started.running.pid}) goes on until it has "
        "marked its boot and stopped the engine",
        f"attach or resume: {started.resumes}; stop: kit stop {run_id}{host}",
    )


def conclude(home: Home, started: Started, state: RunState, status: int) -> Ending:
    """The ending of a sealed run; otherwise the error that stopped it."""
    run_id = started.job.run_id
    if RunDirectory(home.run(run_id)).is_sealed:
        return Ending(run_id, state.done - state.failed, state.failed)
    progress = state.progress
    if status == InterruptedRunError.exit_code:
        raise InterruptedRunError(f"run {run_id} was interrupted, {progress}", started.resumes)
    if status < 0:
        name = signal.Signals(-status).name
        raise InterruptedRunError(
            f"the harness of run {run_id} was ended by {name}, {progress}", started.resumes
        )
    log = home.log(run_id)
    text = log.read_bytes()[started.log_offset :].decode("utf-8", "replace")
    what = f"run {run_id}, {progress}"
    raise harness_error(status, text, what, str(log), started.resumes)


def _until_exit(started: Started, watch: Watch, say: Callable[[str], None]) -> int:
    shown_at = time.monotonic()
    while True:
        # The status first: what the harness wrote before it ended is then surely seen below.
        status = started.running.exit_status()
        for line in watch.lines():
            say(line)
            shown_at = time.monotonic()
        if status is not None:
            return status
        if time.monotonic() - shown_at > _QUIET_S:
            say(describe(watch.state, watch.now_ns()))
            shown_at = time.monotonic()
        time.sleep(_POLL_S)


def describe(state: RunState, now_ns: int) -> str:
    """One line: where the run stands, how long it has run, how long it still may."""
    where = " ".join(part for part in (state.phase, state.boot, state.window) if part)
    elapsed = (
        f", {duration((now_ns - state.started_ns) // 10**9)} so far" if state.started_ns else ""
    )
    left = state.left_s(now_ns)
    # The estimate ran out before the run did: how long it still takes is not known.
    eta = f", about {duration(left)} left" if left else ""
    return f"  … {where}: {state.progress}{elapsed}{eta}"


def duration(seconds: int) -> str:
    """`1 h 02 min`, `3 min 20 s`, `45 s`."""
    if seconds >= 3600:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"
    if seconds >= 60:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds} s"
