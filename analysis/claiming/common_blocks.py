"""The blocks that hold every arm that is set beside others: arms are compared within them alone.

Invariant: a block is one run's, and holds an arm where that has a usable window in it. Source:
R. A. Fisher, The Design of Experiments, 1935: what changes from block to block, as a host's speed
does within an hour, then touches all arms alike (records/plan.py, `boot_order`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from analysis.not_begun import named


class InBlock(Protocol):
    """What was measured in one block of a run."""

    @property
    def run_id(self) -> str: ...
    @property
    def block(self) -> int: ...


_One = TypeVar("_One", bound=InBlock)
Block = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Abreast:
    """Arms set side by side in one window: the blocks that hold all of them, and any of them."""

    arms: tuple[str, ...]
    window: str
    common: tuple[Block, ...]
    held: tuple[Block, ...]

    @property
    def told(self) -> str:
        """Which blocks counted, in words; "" where no arm was measured in any other."""
        if self.common == self.held:
            return ""
        hold = "holds" if len(self.common) == 1 else "hold"
        return f"{blocks_of(self.common)} alone, which {hold} all of these arms"


def common_blocks(found: Mapping[str, Iterable[InBlock]]) -> frozenset[Block]:
    """The blocks in which every one of these arms was measured; `found`: what there is, by arm."""
    each = [{(one.run_id, one.block) for one in measured} for measured in found.values()]
    return frozenset(set.intersection(*each)) if each else frozenset()


def within(blocks: frozenset[Block], measured: Iterable[_One]) -> tuple[_One, ...]:
    """What of it lies in these blocks, in the same order."""
    return tuple(one for one in measured if (one.run_id, one.block) in blocks)


def abreast(window: str, found: Mapping[str, Sequence[InBlock]]) -> Abreast:
    """Which blocks count where these arms are set side by side, and which do not."""
    held = {(one.run_id, one.block) for measured in found.values() for one in measured}
    return Abreast(tuple(found), window, tuple(sorted(common_blocks(found))), tuple(sorted(held)))


def blocks_of(blocks: Iterable[Block]) -> str:
    """`blocks 1 to 10 and 12`; of several runs each with its own before them."""
    runs: dict[str, list[int]] = {}
    for run, block in sorted(set(blocks)):
        runs.setdefault(run, []).append(block)
    if len(runs) == 1:
        return named(*runs.values())
    return "; ".join(f"run {run}, {named(numbers)}" for run, numbers in runs.items())


def by_arm_told(found: Mapping[str, Iterable[InBlock]]) -> str:
    """Each arm with the blocks that it was measured in; arms of the same blocks stand together."""
    arms: dict[tuple[Block, ...], list[str]] = {}
    for arm, measured in found.items():
        held = tuple(sorted({(one.run_id, one.block) for one in measured}))
        arms.setdefault(held, []).append(arm)
    return "; ".join(f"{', '.join(some)}: {blocks_of(held)}" for held, some in arms.items())


def apart_in_blocks(found: Mapping[str, Sequence[InBlock]]) -> Iterator[str]:
    """What is said below a table of arms that were not all measured in the same blocks."""
    if len({frozenset((one.run_id, one.block) for one in some) for some in found.values()}) > 1:
        yield (
            f"Not every block holds every arm ({by_arm_told(found)}), and a host may be faster in "
            "one than in another: two arms are compared within the blocks that hold both."
        )
