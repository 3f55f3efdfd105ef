"""Tables of what was measured: throughput, acceptance, spread, latency, goodput, definitions.

Invariant: only usable windows count (analysis/reading.py); a statistic over boots has one value a
boot, never one a request.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from analysis.claiming.common_blocks import apart_in_blocks
from analysis.definitions import DEFINITIONS, definition
from analysis.metrics import LATENCY_IDS, WindowMetrics, all_definitions
from analysis.plan_order import PlanOrder, by_arm
from analysis.reading import Run
from analysis.statistics.dispersion import cv_interval
from analysis.table import MISSING, Column, Table, number, words

Points = tuple[float | None, float | None, float | None]

_RAMP = (
    "Ramp, left out of latency: in a closed loop requests sent while other connections were still "
    "idle, in an open loop those sent before the first request ended. Throughput and goodput keep "
    "them, because the window's wall time contains them."
)
# One bullet a verdict of analysis/acceptance.py, each with an example.
_AGREEMENT = (
    (
        "Agreement, exact: the accepted tokens of counters and chunks are equal, but for those "
        "that the server reports as cut off. Counters 84, chunks 83, 1 reported as cut off: exact."
    ),
    (
        "Agreement, within truncation: the server does not report cuts, and the difference is no "
        "more than they allow. Counters 45, chunks 43, at most 10 cut off: within truncation."
    ),
    (
        "Agreement, within last chunks: the chunks make out more than the counters, by at most as "
        "many as lists of steps were lost, as one is where a last chunk holds two. Counters 45, "
        "chunks 46, two lists lost: within last chunks."
    ),
    (
        "Agreement, disagree: the difference is of the wrong sign, or larger than the cuts allow. "
        "Counters 45, chunks 30, at most 10 cut off: disagree; chunks were merged or tokens lost."
    ),
    (
        "Agreement, not comparable: they differ, and a request did not complete; the server goes "
        "on for a step or more after a client has left. Counters 45, chunks 30, one cancelled."
    ),
    "Agreement, no speculation: the server counted no draft (0 drafts, or no such counter).",
)
GOODPUT_NAMES = {
    "p95-step-gap": "p95 step gap",
    "tpot.n-1": "TPOT(n-1)",
    "tpot.n-k1": "TPOT(n-k1)",
    "ntpot": "NTPOT",
}


def boot_metrics_table(metrics: Sequence[WindowMetrics]) -> Table:
    """Throughput and acceptance of every used window: the dots behind every mean."""
    rows = [
        (
            m.arm,
            m.window,
            m.run_id,
            m.boot,
            str(m.block),
            str(m.position),
            number(m.output_tokens_per_s, 2),
            number(m.requests_per_s, 3),
            number(m.latency_of("step-gap").p50, 2),
            number(m.acceptance.server_length, 4),
            number(m.acceptance.client_length, 4),
            number(m.acceptance.tokens_per_chunk, 4),
            _undrafted(m),
            *_cut_off(m),
            m.acceptance.verdict,
            " ".join(number(p / 1e6, 3) for p in m.acceptance.per_position_ppm) or MISSING,
        )
        for m in sorted(metrics, key=by_arm)
    ]
    return Table(
        "by-boot",
        "Throughput and acceptance, by boot",
        (
            (
                "Acceptance, server: 1 + accepted / drafts from its counters. Client: "
                "1 + (tokens - chunks) / drafts from the chunks."
            ),
            (
                "Cut off: accepted tokens that a request's limit cut off inside its last step; as "
                "reported by the server, or at most so many by the room in each last chunk."
            ),
            *_AGREEMENT,
            "Position: the boot's place in its block, from 1.",
            "Tokens per chunk counts steps without a draft too.",
            *_merged(metrics),
            (
                "Accepted by position: the share of steps that accepted the draft's first, second, "
                '… token; "-" where the server does not report single requests.'
            ),
        ),
        (
            *words("arm", "window", "run", "boot"),
            Column("block"),
            Column("position"),
            Column("output", "tok/s"),
            Column("requests", "req/s"),
            Column("step gap p50", "ms"),
            Column("acceptance, server", "tok/step"),
            Column("acceptance, client", "tok/step"),
            Column("tokens per chunk"),
            Column("steps without draft"),
            Column("cut off", "tok"),
            *words("counted", "agreement"),
            Column("accepted by position", numeric=False, several=True),
        ),
        tuple(rows),
    )


def dispersion_table(metrics: Sequence[WindowMetrics]) -> Table:
    """Mean and CV over boots with its interval, by arm and window."""
    rows = []
    for (arm, window), group in _cells(metrics):
        throughput = [m.output_tokens_per_s for m in group]
        lengths = [m.acceptance.server_length for m in group if m.acceptance.server_length]
        rows.append(
            (
                arm,
                window,
                str(len(group)),
                number(statistics.fmean(throughput), 2),
                *_cv(throughput),
                number(statistics.fmean(lengths), 4) if lengths else MISSING,
                *_cv(lengths),
            )
        )
    return Table(
        "dispersion",
        "Spread over boots, by arm",
        (
            (
                "CV: standard deviation (n - 1) over mean, one value a boot. Interval: 95 %, "
                "modified McKay (Vangel 1996), for normal data and a CV below a third; with few "
                "boots, or boots in two groups, read the boots themselves. Two boots give none."
            ),
            *_apart(metrics),
        ),
        (
            *words("arm", "window"),
            Column("boots"),
            Column("output, mean", "tok/s"),
            Column("CV", "%"),
            Column("CV 95 % low", "%"),
            Column("CV 95 % high", "%"),
            Column("acceptance, mean", "tok/step"),
            Column("CV, acceptance", "%"),
            Column("CV 95 % low, acceptance", "%"),
            Column("CV 95 % high, acceptance", "%"),
        ),
        tuple(rows),
    )


def latency_table(metrics: Sequence[WindowMetrics]) -> Table:
    """Each latency quantity by arm and window: medians over boots, and the range of the p95."""
    rows = []
    for (arm, window), group in _cells(metrics):
        for id_ in LATENCY_IDS:
            one, found = definition(id_), [m.latency_of(id_) for m in group]
            p95 = [s.p95 for s in found if s.p95 is not None]
            rows.append(
                (
                    arm,
                    window,
                    one.quantity,
                    one.unit,
                    str(len(group)),
                    str(sum(m.latency_requests for m in group)),
                    str(sum(m.ramp_requests for m in group)),
                    *[
                        _median(points)
                        for points in ([s.p50 for s in found], p95, [s.p99 for s in found])
                    ],
                    number(min(p95), 2) if p95 else MISSING,
                    number(max(p95), 2) if p95 else MISSING,
                    str(sum(s.excluded for s in found)),
                )
            )
    return Table(
        "latency",
        "Latency, by arm and quantity",
        (
            (
                "Percentiles within each boot, then the median over boots; low and high are the "
                "least and greatest p95 of a boot."
            ),
            _RAMP,
            "Without: requests on which the quantity is undefined.",
            *_none_remain(metrics),
            *_apart(metrics),
        ),
        (
            *words("arm", "window", "quantity", "unit"),
            Column("boots"),
            Column("requests"),
            Column("ramp"),
            Column("p50"),
            Column("p95"),
            Column("p99"),
            Column("p95 low"),
            Column("p95 high"),
            Column("without"),
        ),
        tuple(rows),
    )


def goodput_table(metrics: Sequence[WindowMetrics]) -> Table:
    """Mean over boots of requests per second meeting each threshold under each quantity."""
    rows = []
    for (arm, window), group in _cells(metrics):
        for index, first in enumerate(group[0].goodput):
            found = [m.goodput[index] for m in group]
            met = sum(g.met for g in found)
            total = sum(g.requests for g in found)
            rows.append(
                (
                    arm,
                    window,
                    GOODPUT_NAMES[first.quantity],
                    number(first.threshold_ms, 0),
                    str(len(group)),
                    number(statistics.fmean(g.per_second for g in found), 3),
                    number(100 * met / total, 1) if total else MISSING,
                    number(statistics.fmean(m.output_tokens_per_s for m in group), 2),
                )
            )
    return Table(
        "goodput",
        "Goodput by threshold, under each quantity",
        (
            (
                "An objective names its quantity: the same records give different goodput under "
                "different ones."
            ),
            "A request on which the quantity is undefined does not meet the objective.",
            "Threshold: in ms for the step gap, in ms/token for the others.",
            *_apart(metrics),
        ),
        (
            *words("arm", "window", "quantity"),
            Column("threshold", "ms"),
            Column("boots"),
            Column("goodput", "req/s"),
            Column("requests meeting it", "%"),
            Column("output", "tok/s"),
        ),
        tuple(rows),
    )


def definitions_table(runs: Sequence[Run]) -> Table:
    """Every tool's latency per token from the same records: medians over boots."""
    found: dict[tuple[str, str], list[dict[str, Points]]] = {}
    for run in runs:
        for boot in run.boots:
            for window in boot.usable_windows:
                values = {s.id: (s.p50, s.p95, s.p99) for s in all_definitions(window)}
                found.setdefault((boot.started.arm, window.window.id), []).append(values)
    rows = []
    order = PlanOrder(run.started.plan for run in runs)
    for arm, window_id in sorted(found, key=lambda cell: order.cell(*cell)):
        boots = found[arm, window_id]
        for one in DEFINITIONS:
            points = [_median([boot[one.id][i] for boot in boots]) for i in (0, 1, 2)]
            rows.append(
                (arm, window_id, one.tool, one.quantity, one.unit, *points, one.rule, one.id)
            )
    return Table(
        "definitions",
        "What each tool would report, from the same records",
        (
            "Percentiles within each boot by the tool's own pooling, then the median over boots.",
            _RAMP,
        ),
        (
            *words("arm", "window", "tool", "quantity", "unit"),
            *[Column(name) for name in ("p50", "p95", "p99")],
            *words("rule", "id"),
        ),
        tuple(rows),
    )


def _cut_off(metrics: WindowMetrics) -> tuple[str, str]:
    """Accepted tokens lost to the ends of requests, and whether only the room for them is known."""
    found = metrics.acceptance
    if found.server_length is None:
        return MISSING, MISSING
    return str(found.truncation_bound), "as reported" if found.truncation_exact else "at most"


def _undrafted(metrics: WindowMetrics) -> str:
    """Steps without a draft, of a window that drafts; none is told where chunks are not steps."""
    found = metrics.acceptance
    if not found.server_length or found.undrafted_chunks < 0:
        return MISSING
    return str(found.undrafted_chunks)


def _merged(metrics: Sequence[WindowMetrics]) -> tuple[str, ...]:
    """Why a window that drafts has no count of its steps without a draft, if one has none."""
    if all(m.acceptance.undrafted_chunks >= 0 for m in metrics if m.acceptance.server_length):
        return ()
    return (
        (
            'Steps without draft: chunks after the first less drafts; "-" where drafts are more, '
            "since the server put several steps into one chunk, or went on after a client had left."
        ),
    )


def _apart(metrics: Sequence[WindowMetrics]) -> Iterator[str]:
    """That two rows may be of other blocks, where some arm was not measured in all of them."""
    by_arms: dict[str, list[WindowMetrics]] = {}
    for (arm, _), group in _cells(metrics):
        by_arms.setdefault(arm, []).extend(group)
    return apart_in_blocks(by_arms)


def _none_remain(metrics: Sequence[WindowMetrics]) -> tuple[str, ...]:
    """Where the ramp left nothing to take a percentile of."""
    empty = [
        f"{arm} {window}"
        for (arm, window), group in _cells(metrics)
        if not any(m.latency_requests for m in group)
    ]
    return (f"No request outside the ramp, so no latency: {', '.join(empty)}.",) if empty else ()


def _cells(metrics: Sequence[WindowMetrics]) -> list[tuple[tuple[str, str], list[WindowMetrics]]]:
    """Metrics by arm and window as the plan has them, each group in order of run and boot."""
    groups: dict[tuple[str, str], list[WindowMetrics]] = {}
    for one in sorted(metrics, key=by_arm):
        groups.setdefault((one.arm, one.window), []).append(one)
    return list(groups.items())


def _cv(values: Sequence[float]) -> tuple[str, str, str]:
    """CV and its interval in percent; of two boots the interval says nothing (one spread)."""
    if len(values) < 2:
        return (MISSING, MISSING, MISSING)
    found = cv_interval(values)
    if len(values) < 3:
        return (number(100 * found.cv, 2), MISSING, MISSING)
    return (number(100 * found.cv, 2), number(100 * found.low, 2), number(100 * found.high, 2))


def _median(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return number(statistics.median(known), 2) if known else MISSING
