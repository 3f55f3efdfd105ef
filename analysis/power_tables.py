"""What a plan's boots can tell, as tables, for arms whose spread is known.

Invariant: an answer rests on a spread that was published, measured or given; where it came from,
and from how many boots, stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

from analysis.metrics import WindowMetrics
from analysis.published import Published
from analysis.statistics.blocking import blocked_ratio
from analysis.statistics.dispersion import cv_interval
from analysis.statistics.planning import (
    MOST_BOOTS,
    MOST_HOSTS,
    MOST_SIMULATED,
    SEED,
    SIMULATIONS,
    Design,
    cv_factors,
    detectable_ratio,
    detectable_spread,
    detectable_spread_anyhow,
    detects_ratio,
    detects_spread,
    detects_spread_anyhow,
    fewest_boots,
    fewest_hosts,
    host_sd_factors,
    meets_margin,
    ratio_error,
    repeats_cv,
    smallest_margin,
)
from analysis.statistics.power import cv_margin_power
from analysis.table import MISSING, Column, Table, number, words

# Of fewer boots the spread is no estimate to plan by.
_LEAST_BOOTS = 3
# Log ratios that differ by less than this differ by rounding.
_NO_ERROR = 1e-12


@dataclass(frozen=True, slots=True)
class Source:
    """An arm's CV (a fraction) and what it is known from; arms of one `group` can be compared."""

    name: str
    cv: float
    boots: int
    group: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The answers to ask for: a difference of arms, an equivalence margin, how near a CV repeats.

    All fractions but `spread`, a ratio of SDs.
    """

    difference: float = 0.05
    margin: float = 0.05
    within: float = 0.50
    spread: float = 2.0


def published_sources(claims: Iterable[Published]) -> list[Source]:
    """The published CVs; `boots` 0 where the source does not say of how many."""
    return [
        Source(claim.id, float(claim.figure) / 100, claim.boots, claim.quantity)
        for claim in claims
        if claim.test == "cv-margin"
    ]


def measured_sources(metrics: Iterable[WindowMetrics]) -> list[Source]:
    """CV of throughput over boots of each arm and window that has three boots and a spread."""
    cells: dict[tuple[str, str], list[float]] = {}
    for one in metrics:
        cells.setdefault((one.window, one.arm), []).append(one.output_tokens_per_s)
    return [
        Source(f"{arm} {window}", cv_interval(values).cv, len(values), window)
        for (window, arm), values in sorted(cells.items())
        if len(values) >= _LEAST_BOOTS and max(values) > min(values)
    ]


def power_tables(sources: Sequence[Source], design: Design, wanted: Wanted) -> list[Table]:
    """What the design can tell of CVs, ratios and spreads, and of hosts where there are several."""
    tables = [
        _cv_table(sources, design, wanted),
        _ratio_table(sources, design, wanted),
        _spread_table(design, wanted),
    ]
    return [*tables, _host_table(design)] if design.hosts > 1 else tables


def spread_found_anyhow(design: Design) -> float:
    """What Brown-Forsythe finds; infinite, so not shown, where so many boots are not simulated."""
    return detectable_spread_anyhow(design) if design.total <= MOST_SIMULATED else math.inf


def blocks_table(metrics: Sequence[WindowMetrics]) -> Table:
    """What a run's blocks gained for each pair of arms with three blocks in common."""
    cells: dict[str, dict[str, dict[tuple[str, int], float]]] = {}
    for one in metrics:
        arms = cells.setdefault(one.window, {})
        arms.setdefault(one.arm, {})[one.run_id, one.block] = one.output_tokens_per_s
    rows = []
    for window, arms in sorted(cells.items()):
        for first, second in combinations(sorted(arms), 2):
            shared = sorted(arms[first].keys() & arms[second].keys())
            over, under = ([arms[arm][block] for block in shared] for arm in (first, second))
            if len(shared) < _LEAST_BOOTS or _same_ratio(over, under):
                continue
            found = blocked_ratio(over, under)
            rows.append(
                (
                    f"{first} {window}",
                    f"{second} {window}",
                    str(found.blocks),
                    number(found.correlation, 2),
                    number(100 * math.sqrt(found.variance), 2),
                    number(100 * math.sqrt(found.unblocked_variance), 2),
                    number(found.gain, 2),
                )
            )
    return Table(
        "blocks",
        "What this run's blocks gained",
        (
            "Correlation of two arms over blocks, as --correlation takes it; of few blocks, rough.",
            "Gain: how many boots in random order one boot in blocks was worth.",
        ),
        (
            *words("arm", "over"),
            Column("blocks"),
            Column("correlation"),
            Column("standard error", "%"),
            Column("standard error, unblocked", "%"),
            Column("gain"),
        ),
        tuple(rows),
    )


def _same_ratio(one: Sequence[float], two: Sequence[float]) -> bool:
    ratios = [math.log(a / b) for a, b in zip(one, two, strict=True)]
    return max(ratios) - min(ratios) < _NO_ERROR


def _cv_table(sources: Sequence[Source], design: Design, wanted: Wanted) -> Table:
    rows = []
    for source in sources:
        low, high = cv_factors(design, source.cv)
        chance = cv_margin_power(source.cv, design.free, wanted.within)
        rows.append(
            (
                source.name,
                number(100 * source.cv, 2),
                str(source.boots) if source.boots else MISSING,
                number(100 * low, 2),
                number(100 * high, 2),
                number(100 * chance, 1),
                _count(fewest_boots(design, repeats_cv(wanted.within, source.cv))),
            )
        )
    return Table(
        "cv",
        "The CV of an arm",
        (
            "Interval: 95 %, modified McKay (Vangel 1996), were this CV found again.",
            (
                f"Repeats: chance that the 90 % interval of an identical repetition lies within "
                f"{_percent(wanted.within)} of the CV."
            ),
            (
                "For normal boots and a CV below a third; analysis/statistics/COVERAGE.md says "
                "what other boots do to it."
            ),
        ),
        (
            *words("arm"),
            Column("CV", "%"),
            Column("known from boots"),
            Column("95 % low", "%"),
            Column("95 % high", "%"),
            Column("repeats", "%"),
            Column("boots for it"),
        ),
        tuple(rows),
    )


def _ratio_table(sources: Sequence[Source], design: Design, wanted: Wanted) -> Table:
    search, unit = (fewest_hosts, "hosts") if design.host_cv else (fewest_boots, "boots")
    rows = []
    for one, two in _comparable(sources):
        error, _ = ratio_error(design, one.cv, two.cv)
        rows.append(
            (
                one.name,
                two.name if two is not one else "one like it",
                number(100 * error, 2),
                number(100 * (detectable_ratio(design, one.cv, two.cv) - 1), 2),
                _count(search(design, detects_ratio(wanted.difference, one.cv, two.cv))),
                number(100 * smallest_margin(design, one.cv, two.cv), 2),
                _count(search(design, meets_margin(wanted.margin, one.cv, two.cv))),
            )
        )
    return Table(
        "ratio",
        "The ratio of two arms",
        (
            (
                f"Found: the smallest difference that the paired t test finds with a power of "
                f"{_percent(design.power)}; {unit} for one of {_percent(wanted.difference)}."
            ),
            (
                f"Margin: the narrowest within which equal arms are found equivalent (TOST) with "
                f"that power; {unit} for one of {_percent(wanted.margin)}."
            ),
            "Boots are of an arm, on each host. Logs of throughput, one boot of each arm a block.",
            f'"-": not with {MOST_HOSTS if design.host_cv else MOST_BOOTS} {unit}.',
        ),
        (
            *words("arm", "over"),
            Column("standard error", "%"),
            Column("found", "%"),
            Column(f"{unit} to find {_percent(wanted.difference)}"),
            Column("margin", "%"),
            Column(f"{unit} for {_percent(wanted.margin)}"),
        ),
        tuple(rows),
    )


def _spread_table(design: Design, wanted: Wanted) -> Table:
    by_f = fewest_boots(design, detects_spread(wanted.spread))
    anyhow = fewest_boots(design, detects_spread_anyhow(wanted.spread))
    return Table(
        "spread",
        "The ratio of two arms' spreads",
        (
            f"Found: the smallest ratio of SDs found with a power of {_percent(design.power)}.",
            (
                f"F is for normal boots; Brown-Forsythe, which keeps its level for any, by "
                f"{SIMULATIONS} simulations of those from seed {SEED}, up to {MOST_SIMULATED} "
                f"boots of an arm in all."
            ),
        ),
        (
            *words("test"),
            Column("found", "ratio"),
            Column(f"boots to find {wanted.spread:g}"),
        ),
        (
            ("F", number(detectable_spread(design), 2), _count(by_f)),
            ("Brown-Forsythe", number(spread_found_anyhow(design), 2), _count(anyhow)),
        ),
    )


def _host_table(design: Design) -> Table:
    low, high = host_sd_factors(design)
    return Table(
        "hosts",
        "The spread over hosts",
        (
            (
                "95 % interval of the SD over hosts, as a multiple of its estimate, at its "
                "narrowest: if boots were all alike."
            ),
        ),
        (Column("hosts"), Column("95 % low"), Column("95 % high")),
        ((str(design.hosts), number(low, 2), number(high, 2)),),
    )


def _comparable(sources: Sequence[Source]) -> Iterator[tuple[Source, Source]]:
    for one, two in combinations_with_replacement(sources, 2):
        if one.group == two.group:
            yield one, two


def _count(boots: int | None) -> str:
    return str(boots) if boots is not None else MISSING


def _percent(fraction: float) -> str:
    return f"{100 * fraction:g} %"
