"""Whether a block of boots still ends before the host goes back.

Invariant: decided before a block's first boot, by time alone; a block that was begun is carried on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from records.plan import Plan, PlannedBoot

# Besides the second binding, which takes what the first one took: the seal, and carrying home.
_RESERVE_S = 15.0


@dataclass(slots=True)
class Lease:
    """How long the host is there, and what boots take on it. `ends_unix_s` 0: not known."""

    plan: Plan
    ends_unix_s: int
    binding_s: float
    took_s: list[float] = field(default_factory=list)

    def fits(self, block: int, now_unix_s: float) -> bool:
        """Whether the block's boots end in time, each as long as the longest so far."""
        if not self.ends_unix_s:
            return True
        estimates = self.plan.estimates
        by_plan = estimates.boot_s + estimates.window_s * len(self.plan.windows)
        boot_s = max(self.took_s) if self.took_s else by_plan
        need_s = boot_s * len(self.plan.arms_in(block)) + self.binding_s + _RESERVE_S
        return now_unix_s + need_s <= self.ends_unix_s

    def first_that_does_not_fit(
        self, boot: PlannedBoot, attempts: Mapping[str, int], remaining: Sequence[PlannedBoot]
    ) -> tuple[int, ...]:
        """The blocks to leave out before this boot: none, or its block and all after it."""
        begun = any(attempts.get(one.id, 0) for one in remaining if one.block == boot.block)
        if begun or boot.position > 1 or self.fits(boot.block, time.time()):
            return ()
        return tuple(sorted({one.block for one in remaining if one.block >= boot.block}))
