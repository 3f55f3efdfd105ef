"""Watch a run until its harness ends, and say what became of it.

Invariant: the verdict comes from the records where there are any; the harness's exit status only
explains why there is no seal.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kit.home import Home
from kit.launch import Started
from kit.run_state import JournalTail, RunState
from records.errors import InterruptedRunError, KitError
from records.run_directory import RunDirectory

RESUMES = "start the same command again: it resumes at the next boot"
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
    state: RunState = field(default_factory=RunState)

    @classmethod
    def begin(cls, run: Path) -> Watch:
        """Take in what the run holds already."""
        watch = cls(JournalTail(RunDirectory(run).events))
        for _ in watch.lines():
            pass
        return watch

    def lines(self) -> Iterator[str]:
        """The lines worth showing since the last call."""
        for envelope in self.tail.new_events():
            line = self.state.see(envelope)
            if line:
                yield line


def follow(home: Home, started: Started, watch: Watch, say: Callable[[str], None]) -> Ending:
    """Show progress until the end. Ctrl-C stops the run in order: InterruptedRunError."""
    try:
        status = _until_exit(started, watch, say)
    except KeyboardInterrupt:
        say("interrupted: asking the harness to mark its boot and stop (Ctrl-C again leaves it)")
        started.running.interrupt()
        status = _until_exit(started, watch, say)
    return conclude(home, started, watch.state, status)


def conclude(home: Home, started: Started, state: RunState, status: int) -> Ending:
    """The ending of a sealed run; otherwise the error that stopped it."""
    run_id = started.job.run_id
    if RunDirectory(home.run(run_id)).is_sealed:
        return Ending(run_id, state.done - state.failed, state.failed)
    progress = f"{state.done} of {state.total} boots done" if state.plan else "no boot begun"
    if status == InterruptedRunError.exit_code:
        raise InterruptedRunError(f"run {run_id} was interrupted, {progress}", RESUMES)
    if status < 0:
        name = signal.Signals(-status).name
        raise InterruptedRunError(
            f"the harness of run {run_id} was ended by {name}, {progress}", RESUMES
        )
    log = home.log(run_id)
    text = log.read_bytes()[started.log_offset :].decode("utf-8", "replace")
    raise harness_error(status, text, f"run {run_id}, {progress}", str(log))


def harness_error(status: int, log: str, what: str, log_name: str) -> KitError:
    """The error that the harness ended with, read from what it printed."""
    classes = {cls.exit_code: cls for cls in _subclasses(KitError)}
    message, remedy = _last_error(log)
    if message and status in classes:
        return classes[status](f"{what}: {message}", remedy or RESUMES)
    if status == 0:
        return InterruptedRunError(f"{what}: the harness is gone without a seal", RESUMES)
    last = "\n".join(f"  {line}" for line in log.strip().splitlines()[-12:])
    return KitError(f"{what}: the harness ended with status {status}:\n{last}", f"read {log_name}")


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
            say(describe(watch.state, time.monotonic_ns()))
            shown_at = time.monotonic()
        time.sleep(_POLL_S)


def describe(state: RunState, now_ns: int) -> str:
    """One line: where the run stands, how long it has run, how long it still may."""
    where = " ".join(part for part in (state.phase, state.boot, state.window) if part)
    elapsed = (
        f", {duration((now_ns - state.started_ns) // 10**9)} so far" if state.started_ns else ""
    )
    left = state.left_s(now_ns)
    eta = f", about {duration(left)} left" if left is not None else ""
    return f"  … {where}: {state.done} of {state.total} boots done{elapsed}{eta}"


def duration(seconds: int) -> str:
    """`1 h 02 min`, `3 min 20 s`, `45 s`."""
    if seconds >= 3600:
        return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"
    if seconds >= 60:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds} s"


def _last_error(log: str) -> tuple[str, str]:
    """The last `error: …` block and its `  try: …` line."""
    start = log.rfind("\nerror: ")
    block = log[start + 1 :] if start >= 0 else log
    if not block.startswith("error: "):
        return "", ""
    message, _, remedy = block.removeprefix("error: ").partition("\n  try: ")
    return message.strip(), remedy.strip().partition("\n")[0]


def _subclasses(cls: type[KitError]) -> Iterator[type[KitError]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)
