"""What a plain client would have reported, beside the kit's own on the same boots.

Invariant: rows pair two windows of one boot and one load, and say how far the engine itself went
another way in them. Besides this table only the one of the server's clock reads the plain client's.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.metrics import LATENCY_IDS, WindowMetrics, peer_metrics, run_metrics
from analysis.plan_order import PlanOrder
from analysis.reading import Run
from analysis.server_clock import Means, WindowClock
from analysis.table import MISSING, Column, Table, number, words
from records.load import Window
from records.plan import Plan

_QUANTITIES = (
    ("ttft.sent", "TTFT from sending", "ms"),
    ("step-gap", "step gap", "ms"),
    ("tpot.n-1", "TPOT(n-1)", "ms/token"),
    ("whole", "end-to-end time", "ms"),
)
_POINTS = ("p50", "p95", "p99")
_NOTES = (
    "The plain client: one event loop, parsing as it reads, stamps in user space.",
    (
        "Percentiles within each boot, then the median over boots; difference: median of the "
        "differences by boot, the plain client's minus the kit's."
    ),
    (
        "These differences hold what the engine did differently in the two windows, one after the "
        "other. By how much: server, difference, of the means by the server's own clock."
    ),
    (
        "Beyond the server's: the plain client's mean minus the server's, minus the same of the "
        "kit's window: what the clients differ by, with what the HTTP front end added. Both means "
        "hold all requests (table server-clock); the ramp weighs more in the shorter window."
    ),
    "No server's mean of step gaps: it counts each output, where a client may get two as one.",
    "End-to-end time: means alone.",
)


def twin(plan: Plan, peer: Window) -> Window | None:
    """The kit's window with the same load, but for its length, as a window of another client."""
    for window in plan.windows:
        same = (window.load.kind, window.load.concurrency, window.endpoint, window.sampling)
        if not window.by_peer and same == (
            peer.load.kind,
            peer.load.concurrency,
            peer.endpoint,
            peer.sampling,
        ):
            return window
    return None


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two windows of one boot: the kit's, and the other client's."""

    kit: WindowMetrics
    peer: WindowMetrics
    kit_means: Mapping[str, Means]
    peer_means: Mapping[str, Means]


def peer_table(runs: Sequence[Run], clocks: Sequence[WindowClock]) -> list[Table]:
    """The table, where a plan has windows of another client; otherwise none.

    `clocks`: those of all usable windows of these runs.
    """
    plans = {run.started.plan.id: run.started.plan for run in runs}
    windows = [
        (plan_id, window, found)
        for plan_id, plan in sorted(plans.items())
        for window in plan.windows
        if window.by_peer and (found := twin(plan, window)) is not None
    ]
    if not windows:
        return []
    kits = {(m.run_id, m.boot, m.window): m for run in runs for m in run_metrics(run)}
    peers = [
        (run.started.plan.id, metrics)
        for run in sorted(runs, key=lambda run: run.run_id)
        for metrics in peer_metrics(run)
    ]
    means = {(one.run_id, one.boot, one.window): one.means for one in clocks}
    order = PlanOrder(plans.values())
    rows = []
    for plan_id, window, kit_window in windows:
        pairs: dict[str, list[_Pair]] = {}
        for of_plan, peer in peers:
            key = (peer.run_id, peer.boot)
            kit = kits.get((*key, kit_window.id))
            if (of_plan, peer.window) == (plan_id, window.id) and kit is not None:
                both = (means.get((*key, one.id), {}) for one in (kit_window, window))
                pairs.setdefault(peer.arm, []).append(_Pair(kit, peer, *both))
        rows += [
            row
            for arm, found in sorted(pairs.items(), key=lambda item: order.arm(item[0]))
            for row in _rows(arm, (kit_window.id, window.id, window.client), found)
        ]
    return [
        Table(
            "peer",
            "What a plain client would have reported, on the same boots",
            _NOTES,
            (
                *words("arm", "window", "plain window", "client", "quantity", "unit"),
                Column("boots"),
                *[Column(f"{who}, {point}") for point in _POINTS
                  for who in ("kit", "plain", "difference")],
                Column("server, difference"),
                Column("beyond the server's, difference"),
            ),
            tuple(rows),
        )
    ]  # fmt: skip


def _rows(
    arm: str, names: tuple[str, str, str], pairs: Sequence[_Pair]
) -> Iterator[tuple[str, ...]]:
    for id_, name, unit in _QUANTITIES:
        cells = [cell for point in _POINTS for cell in _percentiles(id_, point, pairs)]
        both = [
            (pair.kit_means.get(id_, Means()), pair.peer_means.get(id_, Means())) for pair in pairs
        ]
        cells += [
            _differences([(kit.server_ms, peer.server_ms) for kit, peer in both]),
            _differences([(kit.over_server_ms, peer.over_server_ms) for kit, peer in both]),
        ]
        yield (arm, *names, name, unit, str(len(pairs)), *cells)


def _percentiles(id_: str, point: str, pairs: Sequence[_Pair]) -> tuple[str, str, str]:
    if id_ not in LATENCY_IDS:
        return MISSING, MISSING, MISSING
    found = [
        (getattr(pair.kit.latency_of(id_), point), getattr(pair.peer.latency_of(id_), point))
        for pair in pairs
    ]
    known = [(kit, peer) for kit, peer in found if kit is not None and peer is not None]
    return (
        _median([kit for kit, _ in known]),
        _median([peer for _, peer in known]),
        _differences(known),
    )


def _differences(pairs: Sequence[tuple[float | None, float | None]]) -> str:
    """Median over boots of the second minus the first, of those that have both."""
    return _median([two - one for one, two in pairs if one is not None and two is not None])


def _median(values: Sequence[float]) -> str:
    return number(statistics.median(values) if values else None, 3)
