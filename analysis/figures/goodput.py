"""Goodput against the threshold, once for each quantity that an objective may name.

Invariant: the curves of one row come from the same requests; only the definition differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures.figure import Figure
from analysis.figures.rows import Row, arms_of, by_window, grouped, pairs, rows_of
from analysis.figures.style import PALE, WIDE, Look, looks
from analysis.measure_tables import goodput_table
from analysis.metrics import WindowMetrics
from analysis.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_UNITS = {"p95 step gap": "ms"}
# Where all requests pass, goodput is throughput again, and boots alone turn near ties over.
_CLEARLY = 1.02
_BEATEN = "the fastest arm is not first"


def goodput_figure(metrics: Sequence[WindowMetrics]) -> Figure:
    """Goodput curves, a row of panels for each window, a column for each quantity."""
    data = goodput_table(metrics)
    windows = {row[1] for row in data.rows}
    return Figure(
        "goodput",
        "Goodput under each definition of the objective",
        "Requests per second that meet an objective, by its threshold; each column names another "
        "quantity, and all read the same requests. The heavy line is the arm with the highest "
        "output throughput of its window. Where the ground is grey, another arm has clearly more "
        "goodput than that one (by over two percent): there the objective turns the ranking over.",
        "Line plots, rows are windows, columns are the quantities p95 step gap, TPOT(n-1), "
        "TPOT(n-k1) and NTPOT; goodput in requests per second over the threshold in milliseconds, "
        "one line an arm.",
        data,
        (WIDE, 0.7 + 1.5 * max(len(windows), 1)),
        draw_goodput,
        absent="" if data.rows else "no usable window in these records",
    )


def draw_goodput(canvas: Canvas, data: Table) -> None:
    """One panel a window and quantity, the same scale along a row."""
    rows = rows_of(data)
    arms = arms_of(rows)
    windows = by_window(rows)
    quantities = list(grouped(rows, "quantity"))
    axes = canvas.subplots(len(windows), len(quantities), squeeze=False, sharey="row", sharex="col")
    for down, (window, group) in enumerate(windows.items()):
        by_quantity = grouped(group, "quantity")
        for across, quantity in enumerate(quantities):
            _panel(axes[down][across], looks(arms), by_quantity.get(quantity, []))
            # Not before: a lower end of its own would fix the upper one of the whole row.
            if across == len(quantities) - 1:
                axes[down][across].set_ylim(bottom=0)
            if down == 0:
                axes[down][across].set_title(quantity)
            if down == len(windows) - 1:
                unit = _UNITS.get(quantity, "ms/token")
                axes[down][across].set_xlabel(f"threshold ({unit})")
        axes[down][0].set_ylabel(f"{window}: goodput (req/s)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    handles.append(axes[0][0].fill_between([], [], color=PALE))
    canvas.legend(
        handles, [*labels, _BEATEN], loc="outside lower center", ncols=min(len(handles), 4)
    )


def _panel(axis: Axes, look: dict[str, Look], rows: Sequence[Row]) -> None:
    by_arm = grouped(rows, "arm")
    fastest = fastest_arm(rows)
    for arm, group in by_arm.items():
        xs, ys = pairs(group, "threshold_ms", "goodput_req_per_s")
        axis.plot(
            xs, ys, label=arm, color=look[arm].colour, marker=look[arm].marker, clip_on=False,
            linestyle=look[arm].dashes, linewidth=2.2 if arm == fastest else 0.9,
            markersize=4 if arm == fastest else 3, zorder=3 if arm == fastest else 2,
        )  # fmt: skip
    for low, high in beaten_spans(rows, fastest):
        axis.axvspan(low, high, color=PALE, linewidth=0, zorder=0)


def fastest_arm(rows: Sequence[Row]) -> str:
    """The arm with the highest mean output; the first by name where two are equal."""
    outputs = {row["arm"]: row["output_tok_per_s"] or 0.0 for row in rows}
    return max(sorted(outputs), key=lambda arm: outputs[arm]) if outputs else ""


def beaten_spans(rows: Sequence[Row], fastest: str) -> list[tuple[float, float]]:
    """Around each threshold at which another arm has clearly more goodput than `fastest`: from half
    way to its neighbour below to half way to the one above.
    """
    by_threshold = dict(sorted(grouped(rows, "threshold_ms").items()))
    thresholds = list(by_threshold)
    spans = []
    for place, (threshold, group) in enumerate(by_threshold.items()):
        rates = {row["arm"]: row["goodput_req_per_s"] or 0.0 for row in group}
        if max(rates.values()) > _CLEARLY * rates.get(fastest, 0.0):
            below = thresholds[max(place - 1, 0)]
            above = thresholds[min(place + 1, len(thresholds) - 1)]
            spans.append(((below + threshold) / 2, (threshold + above) / 2))
    return spans
