"""The tables of a study: what ran, how fast, what was accepted, how late, what was answered.

Invariant: every cell comes from verified records; arms and windows stand in the order of their plan
(analysis/plan_order.py); void windows and boots that did not complete are counted in `boots`, never
in a metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from analysis.conduct_tables import (
    boots_table,
    calibration_table,
    decisions_table,
    pace_table,
    void_table,
)
from analysis.measure_tables import (
    boot_metrics_table,
    definitions_table,
    dispersion_table,
    goodput_table,
    latency_table,
)
from analysis.metrics import run_metrics
from analysis.one_kind import require_one_kind
from analysis.peer_table import peer_table
from analysis.processor_table import processor_table
from analysis.reading import Run
from analysis.server_clock import window_clocks
from analysis.server_clock_table import server_clock_table
from analysis.table import Table
from analysis.texts import different_texts, texts_table
from analysis.thread_table import thread_table
from records.plan import boot_order
from records.schema import RunClosed

SYNTHETIC = (
    "SYNTHETIC: the engine was the reference server; these numbers say nothing of any engine."
)


def study_tables(runs: Sequence[Run], notes: tuple[str, ...] = ()) -> list[Table]:
    """All tables over these runs. FormatError when synthetic and real runs are mixed.

    `notes`: what stands above the notes of each of them.
    """
    require_one_kind(runs)
    ordered = sorted(runs, key=lambda run: run.run_id)
    notes = (*closed_notes(ordered), *notes)
    metrics = [m for run in ordered for m in run_metrics(run)]
    clocks = [clock for run in ordered for clock in window_clocks(run)]
    different = different_texts(ordered, metrics)
    tables = [
        decisions_table(ordered),
        boots_table(ordered),
        boot_metrics_table(metrics),
        _noted(dispersion_table(metrics), different),
        _noted(latency_table(metrics), different),
        goodput_table(metrics),
        texts_table(ordered, metrics),
        calibration_table(ordered),
        *pace_table(ordered),
        *processor_table(ordered),
        *thread_table(ordered),
        void_table(ordered),
        definitions_table(ordered),
        server_clock_table(clocks),
        *peer_table(ordered, clocks),
    ]
    mark = ""
    if ordered and ordered[0].started.synthetic:
        mark, notes = " (SYNTHETIC)", (SYNTHETIC, *notes)
    return [
        Table(t.name, f"{t.title}{mark}", (*notes, *t.notes), t.columns, t.rows) for t in tables
    ]


def _noted(table: Table, notes: tuple[str, ...]) -> Table:
    """The same with these below its own notes."""
    return replace(table, notes=(*table.notes, *notes))


def closed_notes(runs: Iterable[Run]) -> tuple[str, ...]:
    """What stands above every table over a run that was closed, its host being gone."""
    return tuple(_closed_note(run, run.closed) for run in runs if run.closed is not None)


def _closed_note(run: Run, event: RunClosed) -> str:
    blocks = {boot.block for boot in boot_order(run.started.plan, run.started.blocks)}
    begun = {boot.planned.block: boot.cut_off for boot in run.boots if boot.planned is not None}
    used = sum(not cut_off for cut_off in begun.values())
    bound = "bound before, not after" if event.not_bound_after else "bound before and after"
    return (
        f"Run {run.run_id} was {run.closing}; {bound} its boots; "
        f"blocks carried out: {used} of {len(blocks)}, and no other is used."
    )
