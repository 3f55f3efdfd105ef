"""Whether a block of boots still ends before the host goes back.

Invariant: decided before a block's first boot, by time alone; a block that was begun is carried on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from records.job import LEASE_RESERVE_S
from records.plan import Plan, PlannedBoot
from records.schema import BootEnded, BootStarted, Envelope


@dataclass(slots=True)
class Lease:
    """How long the host is there, and what boots take on it. `ends_unix_s` 0: not known.

    `longest_s`: by arm, its longest boot so far, windows included. `whole_s`: the longest that came
    to its end, of any arm. `first_s`, `first_by_plan_s`: what the boots that filled caches took so
    far, all together, and what the plan gave them.
    """

    plan: Plan
    ends_unix_s: int
    binding_s: float
    longest_s: dict[str, float] = field(default_factory=dict)
    whole_s: float = 0.0
    first_s: float = 0.0
    first_by_plan_s: float = 0.0

    @property
    def slowness(self) -> float:
        """How many times as long as the plan says boots that fill a cache take here; at least 1."""
        return max(1.0, self.first_s / self.first_by_plan_s) if self.first_by_plan_s else 1.0

    def took(self, arm: str, seconds: float, outcome: str = "completed") -> None:
        """A planned boot of this arm took so long; one that failed tells nothing of other arms."""
        self.longest_s[arm] = max(seconds, self.longest_s.get(arm, 0.0))
        if outcome == "completed":
            self.whole_s = max(seconds, self.whole_s)

    def took_first(self, arm: str, seconds: float) -> None:
        """The boot that filled the caches of this arm took so long."""
        self.first_s += seconds
        self.first_by_plan_s += self.plan.first_boot_s(arm)

    def recall(self, events: Iterable[Envelope]) -> None:
        """Learn what boots took from a run's own events, as if it had not been interrupted.

        From boot.started to boot.ended; of an interrupted boot the end may be that of another
        harness, perhaps by the clock of another boot of the host, and nothing is learned.
        """
        begun: dict[str, tuple[BootStarted, int]] = {}
        for envelope in events:
            event = envelope.event
            if isinstance(event, BootStarted):
                begun[event.boot] = event, envelope.t_ns
            elif isinstance(event, BootEnded) and event.outcome != "interrupted":
                boot, start_ns = begun[event.boot]
                seconds = (envelope.t_ns - start_ns) / 1e9
                if boot.planned:
                    self.took(boot.arm, seconds, event.outcome)
                elif event.outcome == "completed":
                    self.took_first(boot.arm, seconds)

    def fits(self, block: int, now_unix_s: float, first: Sequence[str] = ()) -> bool:
        """Whether the block's boots end in time, after those that fill the caches of `first` arms.

        A boot takes what the longest of its arm took, else the longest whole one of any, else what
        the plan estimates; one that fills a cache what the plan estimates, times the slowness.
        """
        if not self.ends_unix_s:
            return True
        estimates = self.plan.estimates
        by_plan = estimates.boot_s + estimates.window_s * len(self.plan.windows)
        unknown_s = self.whole_s or by_plan
        boots_s = sum(self.longest_s.get(arm.id, unknown_s) for arm in self.plan.arms_in(block))
        first_s = sum(map(self.plan.first_boot_s, first)) * self.slowness
        after_s = self.binding_s + LEASE_RESERVE_S  # the second binding takes what the first took
        return now_unix_s + first_s + boots_s + after_s <= self.ends_unix_s

    def left_out(
        self,
        boot: PlannedBoot,
        attempts: Mapping[str, int],
        remaining: Sequence[PlannedBoot],
        first: Sequence[str] = (),
    ) -> tuple[int, ...]:
        """The blocks to leave out before this boot: none, or its block and all after it."""
        begun = any(attempts.get(one.id, 0) for one in remaining if one.block == boot.block)
        if begun or boot.position > 1 or self.fits(boot.block, time.time(), first):
            return ()
        return tuple(sorted({one.block for one in remaining if one.block >= boot.block}))
