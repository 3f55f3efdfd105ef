"""Where the time goes between the command and the first measured window, step by step.

Invariant: a step that this machine takes is measured by its own monotonic clock, one that the host
takes by the host's; no duration is a difference of two machines' clocks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kit.run.state import JournalTail
from records import schema

_NAMED: dict[type, str] = {
    schema.RunStarted: "harness starts",
    schema.Calibrated: "bind engine and models, calibrate the client",
    schema.BootStarted: "prepare the boot",
    schema.BootHealthy: "engine boots",
    schema.EngineDecided: "warm up",
    schema.WindowStarted: "read the counters",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step and how long it took."""

    what: str
    took_ns: int


@dataclass(slots=True)
class Stopwatch:
    """The steps of this machine, from its making on."""

    steps: list[Step] = field(default_factory=list)
    _last_ns: int = field(default_factory=time.monotonic_ns)

    def lap(self, what: str) -> None:
        """A step has ended that began where the last one did."""
        now_ns = time.monotonic_ns()
        self.steps.append(Step(what, now_ns - self._last_ns))
        self._last_ns = now_ns


def to_first_window(events: Path, harness_started_ns: int) -> Iterator[Step]:
    """The host's steps, from its journal; none where no window was begun, or the run was resumed.

    `harness_started_ns`: the host's CLOCK_MONOTONIC when the harness had been started.
    """
    steps: list[Step] = []
    last_ns = harness_started_ns
    for envelope in JournalTail(events).new_events():
        event = envelope.event
        if isinstance(event, schema.RunResumed):
            return
        name = _NAMED.get(type(event))
        if name is None or (isinstance(event, schema.BootStarted) and not event.planned):
            continue
        steps.append(Step(name, max(0, envelope.t_ns - last_ns)))
        last_ns = envelope.t_ns
        if isinstance(event, schema.WindowStarted):
            yield from merged(steps)
            return


def merged(steps: list[Step]) -> Iterator[Step]:
    """The same with what came several times, as calibrations do, taken together."""
    took: dict[str, int] = {}
    for step in steps:
        took[step.what] = took.get(step.what, 0) + step.took_ns
    yield from (Step(what, took_ns) for what, took_ns in took.items())
