"""How much boots of an arm differ, as far as it is known: published, measured or given.

Invariant: where a spread came from, and from how many boots, stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from analysis.metrics import WindowMetrics
from analysis.plan_order import by_window
from analysis.published import Published
from analysis.statistics.dispersion import cv_interval
from analysis.table import MISSING, Column, Table, number, words
from records.plan import Plan, boot_order

# Of fewer boots the spread is no estimate to plan by.
LEAST_BOOTS = 3


@dataclass(frozen=True, slots=True)
class Source:
    """A CV (a fraction), what it is known from, and of how many boots; 0: not said.

    Of one `group` are CVs whose arms can be compared. `arm`: of the plan asked about, "" for none;
    `planned`: how many boots the plan gives it on each host, 0: as many as the design says.
    `blocks`: those of the plan that hold the arm, () where it is not said.
    """

    name: str
    cv: float
    boots: int
    group: str
    known_from: str = ""
    arm: str = ""
    planned: int = 0
    blocks: tuple[int, ...] = ()


def published_sources(claims: Iterable[Published], plan: Plan) -> list[Source]:
    """The published CVs of this plan's arms; where it has none of those, all of them.

    `boots` 0 where the source does not say of how many.
    """
    cvs = [claim for claim in claims if claim.test == "cv-margin"]
    mine = [
        replace(
            _published(claim, _named(arm, place.window, claim.quantity)),
            group=f"{claim.quantity} {place.window}",
            arm=arm,
        )
        for claim in cvs
        for place in claim.measured
        if place.plan == plan.id
        for arm in place.arms
    ]
    return mine or [_published(claim, claim.id) for claim in cvs]


def measured_sources(metrics: Iterable[WindowMetrics]) -> list[Source]:
    """CV of throughput over boots of each arm and window that has three boots and a spread."""
    cells: dict[tuple[str, str], list[WindowMetrics]] = {}
    for one in sorted(metrics, key=by_window):
        cells.setdefault((one.window, one.arm), []).append(one)
    found = []
    for (window, arm), cell in cells.items():
        values = [one.output_tokens_per_s for one in cell]
        if len(values) >= LEAST_BOOTS and max(values) > min(values):
            known = f"throughput of {arm} in window {window} of run {cell[0].run_id}"
            cv = cv_interval(values).cv
            found.append(Source(f"{arm} {window}", cv, len(values), window, known, arm))
    return found


def with_boots_of(sources: Iterable[Source], plan: Plan, hosts: int) -> list[Source]:
    """The sources with their arms' blocks, and boots, which so many hosts share."""
    blocks: dict[str, list[int]] = {}
    for boot in boot_order(plan):
        blocks.setdefault(boot.arm, []).append(boot.block)
    return [
        replace(one, planned=max(2, len(blocks[one.arm]) // hosts), blocks=tuple(blocks[one.arm]))
        if one.arm in blocks
        else one
        for one in sources
    ]


def source_table(sources: Sequence[Source]) -> Table:
    """What is known of each arm, and from where."""
    return Table(
        "sources",
        "How much an arm's boots differ: what everything below rests on",
        (
            (
                "A boot is one start of the engine. CV: the standard deviation over boots, in "
                "percent of their mean."
            ),
        ),
        (*words("arm"), Column("CV", "%"), Column("over boots"), *words("known from")),
        tuple(
            (
                one.name,
                number(100 * one.cv, 2),
                str(one.boots) if one.boots else MISSING,
                one.known_from or "--cv",
            )
            for one in sources
        ),
    )


def _published(claim: Published, name: str) -> Source:
    known = f"published for {claim.of.gpu or 'another machine'}: {claim.text} ({claim.id})"
    return Source(name, float(claim.figure) / 100, claim.boots, claim.quantity, known)


def _named(arm: str, window: str, quantity: str) -> str:
    words = f"{arm} {window}".strip()
    return words if quantity == "throughput" else f"{words}, {quantity.replace('-', ' ')}"
