"""Components of the spread, drawn: how much belongs to host, block, boot and window.

Invariant: a component that cannot be told from another is named, with the reason in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.figures.components import TOGETHER, components
from analysis.figures.figure import Figure
from analysis.figures.rows import Row, rows_of
from analysis.figures.style import GREY, WIDE, looks
from analysis.metrics import WindowMetrics
from analysis.reading import Run
from analysis.table import MISSING, Column, Table, number, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_SOURCES = ("host", "block", "boot", "window")
_ROW_IN = 0.19
# Of few boots the upper ends lie far beyond the estimates; the axis stops at so many times them.
_AXIS_REACH = 6.0


def variance_figure(runs: Sequence[Run], metrics: Sequence[WindowMetrics]) -> Figure:
    """SDs with their intervals, a line for each source."""
    data = variance_data(runs, metrics)
    return Figure(
        "variance",
        "Where the spread of throughput comes from",
        "Standard deviations of output throughput, in percent of it, by source: between hosts, "
        "between blocks on a host, between boots in a block, between the windows of a boot once "
        "the mean of each arm and window is taken off. First for arms taken together, those that "
        "share the most blocks, then for each arm by itself, where boot takes in block and host. "
        "Bars are 95 % intervals; an arrow means that one goes on beyond the axis. What these "
        "records cannot tell apart is said in words.",
        "A chart of lines, each with a marker for a standard deviation in percent and a bar for "
        "its interval; first for arms taken together, then for each arm.",
        data,
        (WIDE, 0.7 + _ROW_IN * max(len(data.rows), 4)),
        draw_variance,
        absent="" if metrics else "no usable window in these records",
    )


def variance_data(runs: Sequence[Run], metrics: Sequence[WindowMetrics]) -> Table:
    """One row a scope and source."""
    # A run that went on at another host is two in this: components() knows one host a run.
    at = {(run.run_id, boot.started.boot): boot.host_id for run in runs for boot in run.boots}
    parts = [replace(m, run_id=f"{m.run_id} at {at[m.run_id, m.boot]}") for m in metrics]
    hosts = {part.run_id: at[m.run_id, m.boot] for m, part in zip(metrics, parts, strict=True)}
    rows = [
        (
            one.scope,
            one.source,
            str(one.df),
            number(one.sd_percent, 3),
            number(one.low_percent, 3),
            number(one.high_percent, 3),
            one.why_not or MISSING,
            " ".join(one.arms),
        )
        for one in (components(parts, hosts) if metrics else ())
    ]
    return Table(
        "variance",
        "Components of the spread of output throughput",
        (
            "SD of the logarithm of throughput times a hundred.",
            "Those blocks count in which each of the arms has every window.",
        ),
        (
            *words("scope", "source"),
            Column("df"),
            Column("SD", "%"),
            Column("95 % low", "%"),
            Column("95 % high", "%"),
            *words("not separable because", "arms"),
        ),
        tuple(rows),
    )


def draw_variance(canvas: Canvas, data: Table) -> None:
    """Lines from top to bottom in the order of the table."""
    rows = rows_of(data)
    axis = canvas.subplots()
    known = [row["sd_percent"] for row in rows if row["sd_percent"] is not None]
    end = _AXIS_REACH * max(known, default=1.0) or 1.0
    names, scope = [], ""
    for place, row in enumerate(rows):
        if row["scope"] != scope:
            scope = row["scope"]
            axis.axhline(place - 0.5, color=GREY, linewidth=0.5)
        names.append(f"{row['scope']}: {row['source']}")
        _line(axis, place, row, end)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlim(-0.02 * end, end)
    axis.set_xlabel(f"standard deviation of throughput (%)\ntogether: {_together(rows)}")
    axis.grid(axis="y", visible=False)


def _together(rows: Sequence[Row]) -> str:
    """The arms of the first scope; all of them in a word."""
    first = str(rows[0]["arms"])
    every = {row["arms"] for row in rows if row["scope"] != TOGETHER}
    return "all arms" if set(first.split()) == every else first.replace(" ", ", ")


def _line(axis: Axes, place: int, row: Row, end: float) -> None:
    look = looks(_SOURCES)[row["source"]]
    if row["sd_percent"] is None:
        axis.text(0.01 * end, place, row["not_separable_because"], color=GREY, va="center")
        return
    low, high = row["95_percent_low_percent"], row["95_percent_high_percent"]
    axis.plot([low, min(high, end)], [place, place], color=look.colour, linewidth=1.4)
    if high > end:
        axis.annotate(
            "", (end, place), (end * 0.97, place),
            arrowprops={"arrowstyle": "->", "color": look.colour, "linewidth": 1.4},
        )  # fmt: skip
    axis.plot([row["sd_percent"]], [place], marker=look.marker, color=look.colour, markersize=5)
