"""Arms and windows in the order of their plan, in every table, figure and page.

Invariant: the plan alone decides the order; of several plans the first that names something does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from records.plan import Plan


class Placed(Protocol):
    """What was measured in one window of one boot. `place`: as `place_of` tells it."""

    @property
    def place(self) -> tuple[int, int]: ...
    @property
    def arm(self) -> str: ...
    @property
    def window(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def boot(self) -> str: ...


def place_of(plan: Plan, arm: str, window: str) -> tuple[int, int]:
    """The places of an arm and of a window among those of their plan, from 0."""
    return [one.id for one in plan.arms].index(arm), plan.window_ids.index(window)


class PlanOrder:
    """Keys to sort names by; what no plan names comes last, by name."""

    def __init__(self, plans: Iterable[Plan]) -> None:
        named = [(plan.window_ids, [arm.id for arm in plan.arms]) for plan in plans]
        self._windows = _numbered(windows for windows, _ in named)
        self._arms = _numbered(arms for _, arms in named)

    def arm(self, name: str) -> tuple[int, str]:
        """The key of an arm."""
        return self._arms.get(name, len(self._arms)), name

    def window(self, name: str) -> tuple[int, str]:
        """The key of a window."""
        return self._windows.get(name, len(self._windows)), name

    def cell(self, arm: str, window: str) -> tuple[tuple[int, str], tuple[int, str]]:
        """The key of an arm's window: by arm, then by window."""
        return self.arm(arm), self.window(window)


def by_arm(one: Placed) -> tuple[int, str, int, str, str, str]:
    """A key to sort by: arm, then window, as the plan has them; then run and boot."""
    arm, window = one.place
    return arm, one.arm, window, one.window, one.run_id, one.boot


def by_window(one: Placed) -> tuple[int, str, int, str, str, str]:
    """A key to sort by: window, then arm, as the plan has them; then run and boot."""
    arm, window = one.place
    return window, one.window, arm, one.arm, one.run_id, one.boot


def merged(orders: Iterable[Sequence[str]]) -> list[str]:
    """All names of several parts of one order, in an order that fits each part.

    A name goes before the one that follows it in its part, or last where nothing known does.
    """
    found: list[str] = []
    for order in orders:
        following = len(found)
        for name in reversed(order):
            if name in found:
                following = found.index(name)
            else:
                found.insert(following, name)
    return found


def _numbered(lists: Iterable[Iterable[str]]) -> dict[str, int]:
    names = dict.fromkeys(name for names in lists for name in names)
    return {name: place for place, name in enumerate(names)}
