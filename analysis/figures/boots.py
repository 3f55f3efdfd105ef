"""Every boot as a dot: throughput and acceptance length by arm and window.

Invariant: one dot a boot and window, none left out; an interval stands beside the dots, never
instead of them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import stats

from analysis.figures.figure import Figure
from analysis.figures.rows import Row, arms_of, by_window, grouped, rows_of
from analysis.figures.style import GREY, PALE, SMALLEST_PT, TALLEST, WIDE, Look, looks
from analysis.metrics import WindowMetrics
from analysis.plan_order import by_window as in_windows
from analysis.statistics.dispersion import cv_interval
from analysis.table import Column, Table, number, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_MOST_PANELS = 3
_QUANTITIES = (
    ("output", "tok_per_s", "output (tok/s)"),
    ("acceptance", "tok_per_step", "acceptance length (tok/step)"),
)
# In rows: where an arm's dots begin, how far above its end they stop, and its interval's line.
_ABOVE, _BELOW, _INTERVAL = 0.25, 0.36, 0.14
# So many dots a row; an arm with more has a taller band, up to so many rows.
_DOTS_A_ROW, _MOST_ROWS = 6, 4.0
_ROW_IN = 0.26
_MANY = 7
_ROOM = 0.3  # for the CV, beside the dots, as a share of their width


def boots_figure(metrics: Sequence[WindowMetrics]) -> Figure:
    """Dots of output throughput and acceptance length, with the mean and its interval below."""
    data = boots_data(metrics)
    rows = sum(_bands(rows_of(data)).values())
    return Figure(
        "boots",
        "Every boot, by arm and window",
        "Each marker is one boot: output throughput (top) and acceptance length (bottom), in a "
        "panel for each window; the boots of an arm in their order from top to bottom. At the "
        "right, from two boots on, their CV: the standard deviation in percent of the mean. The "
        "bar below the markers is the mean with the 95 % interval of Student's t, drawn from three "
        "boots on; with two groups of boots read the markers, not the bar. Arms without "
        "speculation have no acceptance length.",
        "Dot plots. Rows are arms, columns are windows; the upper panels show tokens per second, "
        "the lower ones tokens per step, one marker a boot, with the CV of each arm in numbers.",
        data,
        (WIDE, min(0.9 + 2 * (0.3 + _ROW_IN * max(rows, 2)), TALLEST)),
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
                _cv(rates),
                number(m.acceptance.server_length, 4),
                *mean_interval(known, 4),
                _cv(known),
            )
            for m in group
        ]
    return Table(
        "boots",
        "Every boot, by arm and window",
        (
            "Interval: 95 % of Student's t for the mean over boots, from three boots on.",
            "CV: standard deviation (n - 1) over mean, from two boots on.",
            "Acceptance: 1 + accepted / drafts from the server's counters.",
        ),
        (
            *words("window", "arm", "run", "boot"),
            Column("block"),
            Column("output", "tok/s"),
            *[Column(f"output, {what}", "tok/s") for what in ("mean", "low", "high")],
            Column("output, CV", "%"),
            Column("acceptance", "tok/step"),
            *[Column(f"acceptance, {what}", "tok/step") for what in ("mean", "low", "high")],
            Column("acceptance, CV", "%"),
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


def _cv(values: Sequence[float]) -> str:
    """In percent, as the table of dispersion has it; missing for one value."""
    spread = len(values) > 1 and statistics.fmean(values) > 0
    return number(100 * cv_interval(values).cv if spread else None, 2)


def _bands(rows: Sequence[Row]) -> dict[str, float]:
    """How many rows high the band of each arm is: by the most boots that it has in a window."""
    return {
        arm: min(
            _MOST_ROWS,
            max(1.0, max(map(len, grouped(group, "window").values())) / _DOTS_A_ROW),
        )
        for arm, group in ((arm, grouped(rows, "arm")[arm]) for arm in arms_of(rows))
    }


def draw_boots(canvas: Canvas, data: Table) -> None:
    """Two rows of panels, one column a window, arms from top to bottom."""
    rows = rows_of(data)
    windows = dict(list(by_window(rows).items())[:_MOST_PANELS])
    bands = _bands(rows)
    quantities = [
        quantity
        for quantity in _QUANTITIES
        if any(row[f"{quantity[0]}_{quantity[1]}"] is not None for row in rows)
    ]
    axes = canvas.subplots(len(quantities), len(windows), squeeze=False, sharey=True)
    for across, (window, group) in enumerate(windows.items()):
        axes[0][across].set_title(f"window {window}", loc="left")
        for down, (name, unit, label) in enumerate(quantities):
            _panel(axes[down][across], bands, group, name, unit)
            axes[down][across].set_xlabel(label)


def _panel(
    axis: Axes, bands: Mapping[str, float], rows: Sequence[Row], name: str, unit: str
) -> None:
    look = looks(bands)
    by_arm = grouped(rows, "arm")
    top, centres = 0.0, []
    for arm, height in bands.items():
        dots = [row for row in by_arm.get(arm, []) if row[f"{name}_{unit}"] is not None]
        centres.append(top + height / 2)
        if top:
            axis.axhline(top, color=PALE, linewidth=0.5, zorder=0)
        if dots:
            _dots(axis, dots, (top, height), look[arm], f"{name}_{unit}")
            _interval(axis, dots[0], top + height - _INTERVAL, look[arm].colour, (name, unit))
            _beside(axis, 0.99, centres[-1], _percent(dots[0][f"{name}_cv_percent"]), "right")
        else:
            _beside(axis, 0.02, centres[-1], "no acceptance length", "left")
        top += height
    axis.set_yticks(centres, list(bands))
    axis.set_ylim(top, 0)
    axis.margins(x=0.08)
    if any(row[f"{name}_cv_percent"] is not None for row in rows):
        low, high = axis.get_xlim()
        axis.set_xlim(low, high + _ROOM * (high - low))
        axis.text(
            0.99, 1.01, "CV", color=GREY, ha="right", va="bottom", transform=axis.transAxes,
            fontsize=SMALLEST_PT,
        )  # fmt: skip
    axis.grid(axis="y", visible=False)


def _dots(axis: Axes, dots: Sequence[Row], band: tuple[float, float], look: Look, key: str) -> None:
    """One below the other, so that equal boots are still seen as several."""
    top, height = band
    first, last = top + _ABOVE, top + height - _BELOW
    if len(dots) == 1:
        first = last = (first + last) / 2
    heights = np.linspace(first, last, len(dots)).tolist()
    many = len(dots) >= _MANY
    axis.plot(
        [row[key] for row in dots], heights, linestyle="none", marker=look.marker,
        color=look.colour, markeredgecolor="white", markeredgewidth=0.2 if many else 0.4,
        markersize=3 if many else 4,
    )  # fmt: skip


def _interval(axis: Axes, row: Row, at: float, colour: str, quantity: tuple[str, str]) -> None:
    name, unit = quantity
    low, high = row[f"{name}_low_{unit}"], row[f"{name}_high_{unit}"]
    if low is not None and high is not None:
        axis.plot([low, high], [at, at], color=colour, linewidth=1.5)
    axis.plot([row[f"{name}_mean_{unit}"]], [at], marker="|", markersize=6, color=colour)


def _percent(cv: float | None) -> str:
    return f"{cv:.2f} %" if cv is not None else ""


def _beside(axis: Axes, x: float, y: float, text: str, side: Literal["left", "right"]) -> None:
    """Grey words in the band at `y`; `x`: as a share of the panel's width."""
    axis.text(
        x, y, text, color=GREY, ha=side, va="center", transform=axis.get_yaxis_transform(),
        fontsize=SMALLEST_PT,
    )  # fmt: skip
