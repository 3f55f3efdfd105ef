"""Planned boots at which no attempt was made: of which blocks and arms, and why not.

Invariant: what no row of a table tells of is named here once, with the reason from the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from analysis.plan_order import PlanOrder
from analysis.reading import Run
from records import schema
from records.plan import PlannedBoot, boot_order

LEFT_OUT = "left out, as its host's time was running out"
GONE = "its host had gone for good"
OPEN = "the run has not come to its end"
_NOT_BEGUN, _NO_BOOT = "Not begun", "Arms without a boot"


class Ending(Protocol):
    """How a run came to its end. `left_out`: blocks that it did not begin for want of time."""

    @property
    def left_out(self) -> tuple[int, ...]: ...
    @property
    def closed(self) -> schema.RunClosed | None: ...


def why_not(run: Ending, block: int) -> str:
    """Why a boot of this block was not begun in a run that is sealed; "" where it does not say."""
    if block in run.left_out:
        return LEFT_OUT
    return GONE if run.closed is not None else ""


def not_begun(runs: Sequence[Run]) -> tuple[str, ...]:
    """A sentence for each run and reason, then one of the arms that have no boot at all."""
    return (*(told for run in runs for told in _of_run(run)), *_without_a_boot(runs))


def tells(note: str) -> bool:
    """Whether a table's note is one of `not_begun`."""
    return note.startswith((_NOT_BEGUN, _NO_BOOT))


def named(blocks: Iterable[int]) -> str:
    """`block 2`, `blocks 3 to 5 and 12`."""
    numbers = sorted(set(blocks))
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    parts = [
        part
        for one in spans
        for part in ([f"{one[0]} to {one[-1]}"] if len(one) > 2 else map(str, one))
    ]
    listed = ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)
    return f"block{'s' if len(numbers) > 1 else ''} {listed}"


def _of_run(run: Run) -> Iterator[str]:
    planned = boot_order(run.started.plan, run.started.blocks)
    begun = {boot.planned.id for boot in run.boots if boot.planned is not None}
    lacking: dict[str, list[PlannedBoot]] = {}
    for boot in planned:
        if boot.id not in begun:
            why = why_not(run, boot.block) if run.sealed else OPEN
            lacking.setdefault(why, []).append(boot)
    for why, boots in lacking.items():
        whole = {boot.block for boot in boots} - {b.block for b in planned if b.id in begun}
        rest: dict[int, list[str]] = {}
        for boot in boots:
            if boot.block not in whole:
                rest.setdefault(boot.block, []).append(boot.arm)
        parts = [f"{', '.join(arms)} of block {block}" for block, arms in rest.items()]
        parts += [f"{named(whole)}, whole"] if whole else []
        yield (
            f"{_NOT_BEGUN}, of run {run.run_id}: {len(boots)} of {len(planned)} planned boots "
            f"({'; '.join(parts)}){f': {why}' if why else ''}."
        )


def _without_a_boot(runs: Sequence[Run]) -> Iterator[str]:
    plans = [run.started.plan for run in runs]
    planned = {b.arm for r in runs for b in boot_order(r.started.plan, r.started.blocks)}
    begun = {boot.started.arm for run in runs for boot in run.boots}
    arms = {arm.id for plan in plans for arm in plan.arms} - begun
    parts = [
        f"{', '.join(sorted(some, key=PlanOrder(plans).arm))} ({why})"
        for some, why in (
            (arms & planned, "planned, not begun"),
            (arms - planned, "in no block of these runs"),
        )
        if some
    ]
    if parts:
        yield f"{_NO_BOOT}, and so without a row: {'; '.join(parts)}."
