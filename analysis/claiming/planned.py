"""What a plan rules out whatever its runs do: such a number is no claim of its studies.

Invariant: only what follows from the plan alone, for any number of runs. What a run could give and
did not, as a spread of one boot, stays a claim, with its reason: another run may give it.
"""

from __future__ import annotations

from collections.abc import Iterable

from records.load import Window
from records.plan import Arm, Plan


def side_by_side(plan: Plan, arms: Iterable[Arm]) -> bool:
    """Whether a block of the plan holds all of these arms; they are compared within such alone.

    A block is of one run, so that no second run brings them together (`common_blocks`).
    """
    wanted = {arm.id for arm in arms}
    return any(
        wanted <= {arm.id for arm in plan.arms_in(block)} for block in range(1, plan.blocks + 1)
    )


def has_steady(window: Window) -> bool:
    """Whether any request of the window can come after the ramp; latencies are of those alone.

    In a closed loop the ramp lasts until each stream has had its first answer
    (remote/client/dispatcher.py): of no more requests than streams, all belong to it.
    """
    load = window.load
    return load.kind != "closed" or not 0 < load.requests <= load.concurrency
