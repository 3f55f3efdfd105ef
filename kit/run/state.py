"""How far a run has come, folded from its journal while that is still growing.

Invariant: a state is told by the events alone; lines are consumed once, whole, in order, and a line
that is not finished yet waits for the next look. None is read beyond what a line may hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from records import chain, schema
from records.errors import FormatError
from records.plan import Plan, boot_order
from records.void_words import reason_text

# The type stands before the value (canonical key order), so that the long lines need no decoding.
_TYPE = re.compile(rb'"type":"([a-z.]+)","value":')
_SKIPPED = frozenset({b"window.requests"})
_HEAD_BYTES = 400


class JournalTail:
    """Reads what a journal has gained since the last look. It never holds the file open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._line = 0

    def new_events(self) -> Iterator[schema.Envelope]:
        """Each event since the last call but the requests' own, which say nothing of progress.

        FormatError: what stands there is no journal.
        """
        if self._path.exists() and not self._path.is_file():
            raise FormatError(f"{self._path} is not a file, so no journal", "kit audit")
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._position)
            for line in self._lines(file):
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                self._line += 1
                match = _TYPE.search(line, 0, _HEAD_BYTES)
                if match is None or match[1] not in _SKIPPED:
                    yield _event(line, f"{self._path}:{self._line}")

    def _lines(self, file: BinaryIO) -> Iterator[bytes]:
        try:
            yield from chain.lines_of(file)
        except chain.BrokenLineError as error:  # its number is counted from where this look began
            raise FormatError(
                f"{self._path}:{self._line + 1}: too long: got {error.got}, want {error.want}",
                "kit audit",
            ) from error


def _event(line: bytes, where: str) -> schema.Envelope:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: not JSON: {error}", "kit audit") from error
    return schema.decode(value, where)


@dataclass(slots=True)
class RunState:
    """Where a run stands. Times are CLOCK_MONOTONIC in ns; 0: not yet."""

    plan: Plan | None = None
    blocks: tuple[int, ...] = ()
    run_id: str = ""
    resumed: int = 0
    phase: str = "starting"
    boot: str = ""
    arm: str = ""
    window: str = ""
    outcomes: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    voids: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ended: bool = False
    started_ns: int = 0
    last_ns: int = 0
    _planned: str = ""
    _boot_started_ns: int = 0
    _boot_times_ns: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many boots the run is to bring to an end."""
        return len(boot_order(self.plan, self.blocks)) if self.plan else 0

    @property
    def done(self) -> int:
        """How many planned boots need no further attempt."""
        return sum(outcome != "interrupted" for outcome in self.outcomes.values())

    @property
    def failed(self) -> int:
        """How many planned boots failed."""
        return sum(outcome == "failed" for outcome in self.outcomes.values())

    @property
    def progress(self) -> str:
        """How far it is, in words: before the first event nobody knows of how many boots."""
        return f"{self.done} of {self.total} boots done" if self.plan else "no boot begun"

    def left_s(self, now_ns: int) -> int | None:
        """Seconds still to go: by the boots so far, before the first by the plan's estimates."""
        if self.plan is None or self.ended:
            return None
        if self._boot_times_ns:
            boot_ns = sum(self._boot_times_ns) // len(self._boot_times_ns)
        else:
            estimates = self.plan.estimates
            boot_ns = 1_000_000_000 * (
                estimates.boot_s + estimates.window_s * len(self.plan.windows)
            )
        # A cluster has no clock of its own to ask: its hosts say 0.
        spent_ns = max(0, now_ns - self._boot_started_ns) if self.boot else 0
        return max(0, boot_ns * (self.total - self.done) - min(spent_ns, boot_ns)) // 1_000_000_000

    def see(self, envelope: schema.Envelope) -> str:
        """Take an event into account; a line worth showing, or ""."""
        event, self.last_ns = envelope.event, envelope.t_ns
        self.started_ns = self.started_ns or envelope.t_ns
        line: str = _SEEN.get(type(event), _nothing)(self, event)
        return line

    def _run_started(self, event: schema.RunStarted) -> str:
        self.plan, self.blocks = event.plan, event.blocks
        self.run_id, self.phase = event.run_id, "binding"
        mark = " (SYNTHETIC: reference server)" if event.synthetic else ""
        return f"run {event.run_id}: {count(self.total, 'boot')}{mark}"

    def _run_resumed(self, event: schema.RunResumed) -> str:
        self.resumed += 1
        self.phase = "binding"
        lost = f"; boot {event.interrupted} was cut short" if event.interrupted else ""
        return f"run resumed{lost}"

    def _repaired(self, event: schema.JournalRepaired) -> str:
        return f"a torn last line of {event.dropped_bytes} bytes was cut off and recorded"

    def _bound(self, event: schema.EngineBound) -> str:
        self.phase = "calibrating" if event.phase == "before" else "ending"
        return f"engine bound {event.phase} the boots: {event.digest}"

    def _calibrated(self, event: schema.Calibrated) -> str:
        which = "p99" if event.report.stamps == "kernel" else "no kernel stamps here, largest"
        return (
            f"client calibrated at concurrency {event.concurrency}: "
            f"{which} error {event.bound_ns / 1e6:.3f} ms"
        )

    def _boot_started(self, event: schema.BootStarted) -> str:
        self.phase, self.boot, self.arm, self.window = "booting", event.boot, event.arm, ""
        self._planned, self._boot_started_ns = event.planned, self.last_ns
        if not event.planned:
            return f"unmeasured boot {event.boot}: fills the compile cache"
        return f"boot {self.done + 1} of {self.total}: {event.boot}, starting the engine"

    def _boot_healthy(self, event: schema.BootHealthy) -> str:
        self.phase = "warming up"
        return f"  healthy after {event.after_ns / 1e9:.1f} s"

    def _window_started(self, event: schema.WindowStarted) -> str:
        self.phase, self.window = "measuring", event.window
        return f"  window {event.window}"

    def _window_ended(self, event: schema.WindowEnded) -> str:
        self.window = ""
        name = f"{event.boot}/{event.window}"
        report = event.report
        if event.void:
            self.voids[name] = event.void
            return f"  window {event.window} VOID: {'; '.join(map(reason_text, event.void))}"
        return (
            f"  window {event.window}: {report.completed} of {report.planned} requests "
            f"in {report.wall_ns / 1e9:.1f} s"
        )

    def _boot_ended(self, event: schema.BootEnded) -> str:
        if self._planned:
            self.outcomes[self._planned] = event.outcome
            if event.outcome == "completed":
                self._boot_times_ns.append(self.last_ns - self._boot_started_ns)
        self.boot = self.window = self.arm = ""
        self.phase = "between boots"
        if event.outcome == "completed":
            self.failures.pop(event.boot, None)
            return ""
        self.failures[event.boot] = event.cause
        detail = f"\n{event.detail}" if event.detail else ""
        return f"  boot {event.boot} {event.outcome}: {event.cause}{detail}"

    def _run_closed(self, event: schema.RunClosed) -> str:
        if event.interrupted and self._planned:
            self.outcomes[self._planned] = "interrupted"
        self.boot = self.window = self.arm = ""
        self.ended, self.phase = True, event.WORD
        return f"run {event.WORD} ({event.reason})"

    def _run_ended(self, event: schema.RunEnded) -> str:
        self.ended, self.phase = True, "ended"
        out = event.left_out
        listed = f"{'blocks' if len(out) > 1 else 'block'} {', '.join(map(str, out))}"
        told = f"; {listed} left out, as the host's time was running out" if out else ""
        return f"run ended: {count(event.completed, 'boot')} completed, {event.failed} failed{told}"


def count(number: int, what: str) -> str:
    """`1 boot`, `2 boots`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def _nothing(_state: RunState, _event: Any) -> str:
    return ""


_SEEN: dict[type[Any], Any] = {
    schema.RunStarted: RunState._run_started,
    schema.RunResumed: RunState._run_resumed,
    schema.JournalRepaired: RunState._repaired,
    schema.EngineBound: RunState._bound,
    schema.Calibrated: RunState._calibrated,
    schema.BootStarted: RunState._boot_started,
    schema.BootHealthy: RunState._boot_healthy,
    schema.WindowStarted: RunState._window_started,
    schema.WindowEnded: RunState._window_ended,
    schema.BootEnded: RunState._boot_ended,
    schema.RunEnded: RunState._run_ended,
    schema.RunClosed: RunState._run_closed,
}


def read_state(events: Path) -> RunState:
    """The state of a run as its journal stands now."""
    state = RunState()
    for envelope in JournalTail(events).new_events():
        state.see(envelope)
    return state
