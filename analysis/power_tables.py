"""What a plan's boots can tell, as tables, for arms whose spread is known.

Invariant: an answer rests on a spread that was published, measured or given; where it came from,
and from how many boots, stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement

from analysis.metrics import WindowMetrics
from analysis.plan_order import by_window
from analysis.power_sources import LEAST_BOOTS, Source, source_table
from analysis.statistics.blocking import blocked_ratio, same_ratio
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

# One difference of a pair has no spread.
_LEAST_PAIRS = 2


@dataclass(frozen=True, slots=True)
class Wanted:
    """The answers to ask for: a difference of arms, an equivalence margin, how near a CV repeats.

    All fractions but `spread`, a ratio of SDs.
    """

    difference: float = 0.05
    margin: float = 0.05
    within: float = 0.50
    spread: float = 2.0


def power_tables(sources: Sequence[Source], design: Design, wanted: Wanted) -> list[Table]:
    """What the design can tell of CVs, ratios and spreads, and of hosts where there are several.

    The first table says what CVs the others rest on.
    """
    tables = [
        source_table(sources),
        _cv_table(sources, design, wanted),
        _ratio_table(sources, design, wanted),
        _spread_table(_of_two(design, sources), wanted),
    ]
    return [*tables, _host_table(design)] if design.hosts > 1 else tables


def spread_found_anyhow(design: Design) -> float:
    """What Brown-Forsythe finds; infinite, so not shown, where so many boots are not simulated."""
    return detectable_spread_anyhow(design) if design.total <= MOST_SIMULATED else math.inf


def blocks_table(metrics: Sequence[WindowMetrics]) -> Table:
    """What a run's blocks gained for each pair of arms with three blocks in common."""
    cells: dict[str, dict[str, dict[tuple[str, int], float]]] = {}
    for one in sorted(metrics, key=by_window):
        arms = cells.setdefault(one.window, {})
        arms.setdefault(one.arm, {})[one.run_id, one.block] = one.output_tokens_per_s
    rows = []
    for window, arms in cells.items():
        for first, second in combinations(arms, 2):
            shared = sorted(arms[first].keys() & arms[second].keys())
            over, under = ([arms[arm][block] for block in shared] for arm in (first, second))
            if len(shared) < LEAST_BOOTS or same_ratio(over, under):
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
            "correlation: of two arms over blocks, for --correlation; of few blocks, rough.",
            "gain: how many boots in random order one boot in blocks was worth.",
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


def _cv_table(sources: Sequence[Source], design: Design, wanted: Wanted) -> Table:
    rows = []
    for source in sources:
        mine = _of(design, source)
        low, high = cv_factors(mine, source.cv)
        chance = cv_margin_power(source.cv, mine.free, wanted.within)
        rows.append(
            (
                source.name,
                str(mine.boots),
                number(100 * source.cv, 2),
                number(100 * low, 2),
                number(100 * high, 2),
                number(100 * chance, 1),
                _count(fewest_boots(design, repeats_cv(wanted.within, source.cv))),
            )
        )
    return Table(
        "cv",
        "How well an arm's CV would be known",
        (
            (
                "95 % low, high: where the true CV may lie if just this one is found (modified "
                "McKay, Vangel 1996)."
            ),
            (
                f"repeats: the chance that the same study again finds it within "
                f"{_percent(wanted.within)}, its 90 % interval wholly inside; boots to repeat: how "
                f"many give {_percent(design.power)}."
            ),
            (
                "For normal boots and a CV below a third; analysis/statistics/COVERAGE.md says "
                "what other boots do to it."
            ),
        ),
        (
            *words("arm"),
            Column("boots"),
            Column("CV", "%"),
            Column("95 % low", "%"),
            Column("95 % high", "%"),
            Column("repeats", "%"),
            Column("boots to repeat"),
        ),
        tuple(rows),
    )


def _ratio_table(sources: Sequence[Source], design: Design, wanted: Wanted) -> Table:
    search, unit = (fewest_hosts, "hosts") if design.host_cv else (fewest_boots, "boots")
    rows, found, equal = [], 0, 0
    for one, two in _comparable(sources):
        shared = _shared(design, one, two)
        # What more boots would do hangs on no number of them.
        mine = replace(design, boots=max(2, shared))
        error, least, margin = MISSING, MISSING, MISSING
        finds = detects_ratio(wanted.difference, one.cv, two.cv)
        meets = meets_margin(wanted.margin, one.cv, two.cv)
        if shared >= _LEAST_PAIRS:
            error = number(100 * ratio_error(mine, one.cv, two.cv)[0], 2)
            least = number(100 * (detectable_ratio(mine, one.cv, two.cv) - 1), 2)
            margin = number(100 * smallest_margin(mine, one.cv, two.cv), 2)
            found, equal = found + finds(mine), equal + meets(mine)
        rows.append(
            (
                one.name,
                two.name if two is not one else "one like it",
                str(shared),
                error,
                least,
                _count(search(mine, finds)),
                margin,
                _count(search(mine, meets)),
            )
        )
    return Table(
        "ratio",
        "What difference between two arms would be found",
        (
            (
                f"finds: the smallest difference that is found with a chance of "
                f"{_percent(design.power)} (paired t test of logs, a boot of each arm in a block). "
                f"One of {_percent(wanted.difference)} is found in {found} of {len(rows)} rows."
            ),
            (
                f"equal within: the narrowest margin within which arms that are equal are shown to "
                f"be, with that chance (TOST). {_percent(wanted.margin)} does in {equal} of "
                f"{len(rows)} rows."
            ),
            (
                f"{unit} to …: how many{_on_each(design)} do it; {MISSING}: not with "
                f"{MOST_HOSTS if design.host_cv else MOST_BOOTS}."
            ),
            *_few_in_common(rows),
        ),
        (
            *words("arm", "over"),
            Column("boots"),
            Column("standard error", "%"),
            Column("finds", "%"),
            Column(f"{unit} to find {_percent(wanted.difference)}"),
            Column("equal within", "%"),
            Column(f"{unit} to show {_percent(wanted.margin)}"),
        ),
        tuple(rows),
    )


def _of(design: Design, source: Source) -> Design:
    """The design with the boots that the plan gives this arm."""
    return replace(design, boots=source.planned) if source.planned else design


def _shared(design: Design, one: Source, two: Source) -> int:
    """How many boots of both arms a host has in blocks that hold both: those alone are compared."""
    fewest = min(_of(design, source).boots for source in (one, two))
    if not (one.blocks and two.blocks):
        return fewest
    common = len(set(one.blocks) & set(two.blocks))
    # As each arm's own boots, fewer than two a host are reckoned as two.
    return min(fewest, max(2, common // design.hosts)) if common >= _LEAST_PAIRS else common


def _few_in_common(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    pairs = [f"{one} and {two}" for one, two, boots, *_ in rows if int(boots) < _LEAST_PAIRS]
    if pairs:
        yield (
            "boots: in blocks that hold both arms, within which alone they are compared; of fewer "
            f"than {_LEAST_PAIRS} nothing is found: {', '.join(pairs)}."
        )


def _on_each(design: Design) -> str:
    if design.host_cv:
        return " with so many boots of an arm on each"
    return " of an arm on each host" if design.hosts > 1 else " of an arm"


def _of_two(design: Design, sources: Sequence[Source]) -> Design:
    """With the boots that two arms of the plan have at least, where arms have not all as many."""
    planned = sorted({s.arm: s.planned for s in sources if s.planned}.values(), reverse=True)
    return replace(design, boots=planned[1]) if len(planned) > 1 else design


def _spread_table(design: Design, wanted: Wanted) -> Table:
    by_f = fewest_boots(design, detects_spread(wanted.spread))
    anyhow = fewest_boots(design, detects_spread_anyhow(wanted.spread))
    return Table(
        "spread",
        "What difference between two arms' spreads would be found",
        (
            (
                f"finds: the smallest ratio of two standard deviations that is found with a chance "
                f"of {_percent(design.power)}, with {design.boots} boots of an arm"
                f"{' on each host' if design.hosts > 1 else ''}."
            ),
            (
                f"F is for normal boots; Brown-Forsythe, which keeps its level for any, by "
                f"{SIMULATIONS} simulations of those from seed {SEED}, up to {MOST_SIMULATED} "
                f"boots of an arm in all."
            ),
        ),
        (
            *words("test"),
            Column("finds", "ratio"),
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
        "How well the spread between hosts would be known",
        (
            (
                "95 % interval of the standard deviation over hosts, as a multiple of what is "
                "found, at its narrowest: if boots were all alike."
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
