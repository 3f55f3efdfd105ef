"""Every boot as a dot: throughput and acceptance length by arm and window.

Invariant: one dot a boot and window, none left out; an interval stands beside the dots, never
instead of them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scipy import stats

from analysis.figures.figure import Figure
from analysis.figures.rows import Row, arms_of, by_window, grouped, rows_of
from analysis.figures.style import GREY, WIDE, looks
from analysis.metrics import WindowMetrics
from analysis.plan_order import by_window as in_windows
from analysis.table import Column, Table, number, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_MOST_PANELS = 3
_QUANTITIES = (
    ("output", "tok_per_s", "output (tok/s)"),
    ("acceptance", "tok_per_step", "acceptance length (tok/step)"),
)
_SPREAD = 0.15  # how far the dots of one arm stand apart, in rows
_MANY = 7
_INTERVAL_BELOW = 0.36


def boots_figure(metrics: Sequence[WindowMetrics]) -> Figure:
    """Dots of output throughput and acceptance length, with the mean and its interval below."""
    data = boots_data(metrics)
    arms = {row[1] for row in data.rows}
    return Figure(
        "boots",
        "Every boot, by arm and window",
        "Each marker is one boot: output throughput (top) and acceptance length (bottom), in a "
        "panel for each window; the boots of an arm in their order from top to bottom. The bar "
        "below the markers is their mean with the 95 % interval of Student's t, drawn from three "
        "boots on; with two groups of boots read the markers, not the bar. Arms without "
        "speculation have no acceptance length.",
        "Dot plots. Rows are arms, columns are windows; the upper panels show tokens per second, "
        "the lower ones tokens per step, one marker a boot.",
        data,
        (WIDE, 0.9 + 2 * (0.3 + 0.26 * max(len(arms), 2))),
        draw_boots,
        absent="" if data.rows else "no usable window in these records",
    )


def boots_data(metrics: Sequence[WindowMetrics]) -> Table:
    """One row a boot and window, with mean and interval of the arm and window it belongs to."""
    cells: dict[tuple[str, str], list[WindowMetrics]] = {}
    for one in sorted(metrics, key=in_windows):
        cells.setdefault((one.window, one.arm), []).append(one)
    rows = []
    for (window, arm), group in cells.items():
        rates = [m.output_tokens_per_s for m in group]
        lengths = [m.acceptance.server_length for m in group]
        known = [length for length in lengths if length is not None]
        rows += [
            (
                window,
                arm,
                m.run_id,
                m.boot,
                str(m.block),
                number(m.output_tokens_per_s, 2),
                *mean_interval(rates, 2),
                number(m.acceptance.server_length, 4),
                *mean_interval(known, 4),
            )
            for m in group
        ]
    return Table(
        "boots",
        "Every boot, by arm and window",
        (
            "Interval: 95 % of Student's t for the mean over boots, from three boots on.",
            "Acceptance: 1 + accepted / drafts from the server's counters.",
        ),
        (
            *words("window", "arm", "run", "boot"),
            Column("block"),
            Column("output", "tok/s"),
            *[Column(f"output, {what}", "tok/s") for what in ("mean", "low", "high")],
            Column("acceptance", "tok/step"),
            *[Column(f"acceptance, {what}", "tok/step") for what in ("mean", "low", "high")],
        ),
        tuple(rows),
    )


def mean_interval(values: Sequence[float], digits: int) -> tuple[str, str, str]:
    """Mean with the 95 % interval of Student's t as cells; no interval below three values.

    Source: G. W. Snedecor and W. G. Cochran, Statistical Methods, 8th ed., section 4.7. Two values
    give an interval of nearly thirteen times their standard error, which says nothing in a plot.
    """
    if not values:
        return (number(None, digits),) * 3
    mean = statistics.fmean(values)
    if len(values) < 3:
        return (number(mean, digits), number(None, digits), number(None, digits))
    error = statistics.stdev(values) / math.sqrt(len(values))
    reach = float(stats.t.ppf(0.975, len(values) - 1)) * error
    return (number(mean, digits), number(mean - reach, digits), number(mean + reach, digits))


def draw_boots(canvas: Canvas, data: Table) -> None:
    """Two rows of panels, one column a window, arms from top to bottom."""
    rows = rows_of(data)
    windows = dict(list(by_window(rows).items())[:_MOST_PANELS])
    arms = arms_of(rows)
    quantities = [
        quantity
        for quantity in _QUANTITIES
        if any(row[f"{quantity[0]}_{quantity[1]}"] is not None for row in rows)
    ]
    axes = canvas.subplots(len(quantities), len(windows), squeeze=False, sharey=True)
    for across, (window, group) in enumerate(windows.items()):
        axes[0][across].set_title(f"window {window}")
        for down, (name, unit, label) in enumerate(quantities):
            _panel(axes[down][across], arms, group, name, unit)
            axes[down][across].set_xlabel(label)


def _panel(axis: Axes, arms: Sequence[str], rows: Sequence[Row], name: str, unit: str) -> None:
    look = looks(arms)
    by_arm = grouped(rows, "arm")
    for place, arm in enumerate(arms):
        dots = [row for row in by_arm.get(arm, []) if row[f"{name}_{unit}"] is not None]
        if not dots:
            axis.text(
                0.02,
                place,
                "no acceptance length",
                color=GREY,
                va="center",
                transform=axis.get_yaxis_transform(),
                fontsize=7,
            )
            continue
        # Apart from each other, so that equal boots are still seen as several.
        step = 2 * _SPREAD / max(len(dots) - 1, 1)
        heights = (
            [place - _SPREAD + step * i for i in range(len(dots))] if len(dots) > 1 else [place]
        )
        axis.plot(
            [row[f"{name}_{unit}"] for row in dots], heights, linestyle="none",
            marker=look[arm].marker, color=look[arm].colour, markeredgecolor="white",
            markeredgewidth=0.4 if len(dots) < _MANY else 0.2,
            markersize=4 if len(dots) < _MANY else 3,
        )  # fmt: skip
        first, below = dots[0], place + _INTERVAL_BELOW
        low, high = first[f"{name}_low_{unit}"], first[f"{name}_high_{unit}"]
        if low is not None and high is not None:
            axis.plot([low, high], [below, below], color=look[arm].colour, linewidth=1.5)
        axis.plot(
            [first[f"{name}_mean_{unit}"]],
            [below],
            marker="|",
            markersize=6,
            color=look[arm].colour,
        )
    axis.set_yticks(range(len(arms)), arms)
    axis.set_ylim(len(arms) - 0.45, -0.5)
    axis.margins(x=0.08)
    axis.grid(axis="y", visible=False)
