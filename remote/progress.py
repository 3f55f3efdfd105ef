"""What of a plan has been done, told from the events alone.

Invariant: nothing but the journal decides what is left to do, so any harness can take over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from records.errors import FormatError
from records.plan import Plan, PlannedBoot, boot_order
from records.schema import (
    BootEnded,
    BootStarted,
    EngineDecided,
    Envelope,
    RunClosed,
    RunEnded,
    RunResumed,
    RunStarted,
)


@dataclass(slots=True)
class Progress:
    """Where a run stands. `open_boot`: begun and not ended; `primed`: arms with filled caches.

    `cache_gone`: the warm cache was once found gone, and what was carried with it.

    `compiled`: by arm, the state of the compile cache that its priming boot logged.
    """

    started: RunStarted | None = None
    ended: bool = False
    closed: bool = False
    cache_gone: bool = False
    open_boot: str = ""
    outcomes: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    primed: set[str] = field(default_factory=set)
    priming_attempts: dict[str, int] = field(default_factory=dict)
    compiled: dict[str, str] = field(default_factory=dict)
    _planned: dict[str, BootStarted] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Envelope]) -> Progress:
        """Read the progress off a journal."""
        progress = cls()
        for envelope in events:
            progress.see(envelope.event)
        return progress

    def see(self, event: object) -> None:
        """Take one event into account; events that decide nothing are passed over."""
        if isinstance(event, RunStarted):
            self.started = event
        elif isinstance(event, BootStarted):
            self.open_boot = event.boot
            self._planned[event.boot] = event
            if event.planned:
                self.attempts[event.planned] = event.attempt
            else:
                self.priming_attempts[event.arm] = event.attempt
        elif isinstance(event, EngineDecided):
            begun = self._planned.get(event.boot)
            if begun is not None and not begun.planned:
                state = event.facts.get("compile_cache")
                self.compiled[begun.arm] = state["state"] if isinstance(state, dict) else ""
        elif isinstance(event, BootEnded):
            self._end(event)
        elif isinstance(event, RunResumed) and event.cache_gone:
            self.cache_gone = True
            self.primed.clear()
            self.compiled.clear()
        elif isinstance(event, RunEnded):
            self.ended = True
        elif isinstance(event, RunClosed):
            self.closed = True

    def _end(self, event: BootEnded) -> None:
        begun = self._planned.get(event.boot)
        if begun is None:
            raise FormatError(f"boot {event.boot} ended without having started")
        self.open_boot = ""
        if begun.planned:
            self.outcomes[begun.planned] = event.outcome
        elif event.outcome == "completed":
            self.primed.add(begun.arm)

    def remaining(self, plan: Plan) -> list[PlannedBoot]:
        """The planned boots still to do: not begun, or interrupted, however often.

        An interruption says nothing about a boot, so none uses one up; whoever wants to give a run
        up begins another.
        """
        return [
            boot
            for boot in boot_order(plan, self.started.blocks if self.started else ())
            if self.outcomes.get(boot.id) not in ("completed", "failed")
        ]

    def next_attempt(self, boot: PlannedBoot) -> tuple[str, int]:
        """The id and number of the next attempt at a planned boot."""
        attempt = self.attempts.get(boot.id, 0) + 1
        return (boot.id if attempt == 1 else f"{boot.id}.{attempt}"), attempt

    @property
    def completed(self) -> int:
        """How many planned boots completed."""
        return sum(outcome == "completed" for outcome in self.outcomes.values())

    @property
    def failed(self) -> int:
        """How many planned boots failed, and will not be tried again."""
        return sum(outcome == "failed" for outcome in self.outcomes.values())
