"""What a plain client would have reported, beside the kit's own on the same boots.

Invariant: rows pair two windows of one boot and one load; no other table reads the plain client's.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis.metrics import WindowMetrics, peer_metrics, run_metrics
from analysis.reading import Run
from analysis.table import Column, Table, number, words
from records.load import Window
from records.plan import Plan

_QUANTITIES = (
    ("ttft.sent", "TTFT from sending", "ms"),
    ("step-gap", "step gap", "ms"),
    ("tpot.n-1", "TPOT(n-1)", "ms/token"),
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


def peer_table(runs: Sequence[Run]) -> list[Table]:
    """The table, where a plan has windows of another client; otherwise none."""
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
    rows = []
    for plan_id, window, kit_window in windows:
        pairs: dict[str, list[tuple[WindowMetrics, WindowMetrics]]] = {}
        for of_plan, peer in peers:
            kit = kits.get((peer.run_id, peer.boot, kit_window.id))
            if (of_plan, peer.window) == (plan_id, window.id) and kit is not None:
                pairs.setdefault(peer.arm, []).append((kit, peer))
        rows += [
            row
            for arm, found in sorted(pairs.items())
            for row in _rows(arm, (kit_window.id, window.id, window.client), found)
        ]
    return [
        Table(
            "peer",
            "What a plain client would have reported, on the same boots",
            (
                "The plain client: one event loop, parsing as it reads, stamps in user space.",
                (
                    "Percentiles within each boot, then the median over boots; difference: median "
                    "of the differences by boot, the plain client's minus the kit's."
                ),
            ),
            (
                *words("arm", "window", "plain window", "client", "quantity", "unit"),
                Column("boots"),
                *[Column(f"{who}, {point}") for point in ("p50", "p95", "p99")
                  for who in ("kit", "plain", "difference")],
            ),
            tuple(rows),
        )
    ]  # fmt: skip


def _rows(
    arm: str, names: tuple[str, str, str], pairs: Sequence[tuple[WindowMetrics, WindowMetrics]]
) -> list[tuple[str, ...]]:
    rows = []
    for id_, name, unit in _QUANTITIES:
        cells: list[str] = []
        for point in ("p50", "p95", "p99"):
            found = [
                (getattr(kit.latency_of(id_), point), getattr(peer.latency_of(id_), point))
                for kit, peer in pairs
            ]
            known = [(kit, peer) for kit, peer in found if kit is not None and peer is not None]
            cells += [
                _median([kit for kit, _ in known]),
                _median([peer for _, peer in known]),
                _median([peer - kit for kit, peer in known]),
            ]
        rows.append((arm, *names, name, unit, str(len(pairs)), *cells))
    return rows


def _median(values: Sequence[float]) -> str:
    return number(statistics.median(values) if values else None, 3)
