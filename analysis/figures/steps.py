"""Every step of one stream, boot by boot: when steps change their speed, and for how long.

Invariant: steps stand in the order in which they came, none averaged with another; what is dark was
slow against the fastest steps of its own arm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.figures.figure import Figure
from analysis.figures.rows import Row, arms_of, by_window, grouped, rows_of
from analysis.figures.style import TALLEST, WIDE
from analysis.plan_order import PlanOrder
from analysis.reading import Boot, MeasuredWindow, Run
from analysis.table import Column, Table, number, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.image import AxesImage

# What a row can show at the width of a page.
_MOST_STEPS = 400
_ROW_IN, _BETWEEN_IN = 0.13, 0.05
# An arm is never lower than its name; arms that are too many for a page stand in several columns.
_NAME_IN, _MOST_COLUMNS = 0.15, 3
_AROUND_IN = 1.1  # the axis of steps, and the scale of shades below it
_PT_PER_IN = 72
_FASTEST_PERCENT = 5
# From the fastest to so many times as slow; beyond that it is as dark.
_SLOWEST = 2.5
# Sequential, and as readable in grey (J. R. Nunez et al., PLoS ONE 13 (2018) e0199239).
_COLOURS = "cividis_r"


def steps_figure(runs: Sequence[Run]) -> Figure:
    """Step gaps of the window of one stream in their order, a row a boot, a panel an arm."""
    data = steps_data(runs)
    rows = rows_of(data)
    return Figure(
        "steps",
        "Every step of one stream, by boot",
        "Each row is one boot, each cell one step gap of its window of one stream, from left to "
        "right as they came, the ramp's requests included; an arm's boots stand below each other. "
        "The darker, the longer against the fastest twentieth of the arm's steps. One stream has "
        "one request in every step, so with a draft model, or without drafts, the steps of a row "
        "do the same work: where a row changes its shade, the engine or its host changed its "
        "speed. Where drafts are looked up in the text (n-gram), a step for which none was found "
        "has less to do, and is lighter for that.",
        "Strips of cells, one for each boot, grouped by arm; cells are step gaps in the order of "
        "time, shaded from light for the arm's fastest to dark for two and a half times as long.",
        data,
        (WIDE, height_of(data)),
        draw_steps,
        absent="" if rows else "no usable window of one stream with two chunks in a request",
    )


def steps_data(runs: Sequence[Run]) -> Table:
    """One row a boot: its step gaps in order."""
    order = PlanOrder(run.started.plan for run in runs)
    found = [
        (measured.window.id, boot.started.arm, run.run_id, boot.started.boot, gaps)
        for run in runs
        for boot, measured in _of_one_stream(run)
        if (gaps := _gaps(measured))
    ]
    found.sort(key=lambda row: (order.window(row[0]), order.arm(row[1])))
    return Table(
        "steps",
        "Every step of one stream, by boot",
        (
            f"Step gaps in the order of time, the first {_MOST_STEPS} of a boot.",
            "Of completed requests, those of the ramp included.",
        ),
        (*words("window", "arm", "run", "boot"), Column("step gaps", "ms", False, several=True)),
        tuple(found),
    )


def _of_one_stream(run: Run) -> Iterator[tuple[Boot, MeasuredWindow]]:
    for boot in run.boots:
        for measured in boot.usable_windows:
            if measured.window.load.concurrency == 1:
                yield boot, measured


def _gaps(measured: MeasuredWindow) -> str:
    gaps: list[str] = []
    for part in measured.source.batches():
        if len(gaps) < _MOST_STEPS:
            gaps += [number(ns / 1e6, 1) for ns in part.for_goodput.gaps_ns().tolist()]
    return " ".join(gaps[:_MOST_STEPS])


def _panels(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by what stands beside them: the arm, and its window where there are several."""
    windows = by_window(rows)
    return {
        f"{arm}, {window}" if len(windows) > 1 else arm: grouped(some, "arm")[arm]
        for arm in arms_of(rows)
        for window, some in windows.items()
        if arm in grouped(some, "arm")
    }


def height_of(data: Table) -> float:
    """Inches that the whole figure takes, a page's at most."""
    columns = _columns(_panels(rows_of(data)))
    high_in = max((_height_in(column.values()) for column in columns), default=0.5)
    return min(_AROUND_IN + high_in, TALLEST)


def _height_in(panels: Iterable[Sequence[Row]]) -> float:
    """Of a column, its axis not counted."""
    return sum(max(_NAME_IN, _ROW_IN * len(boots)) + _BETWEEN_IN for boots in panels)


def _columns(panels: dict[str, list[Row]]) -> list[dict[str, list[Row]]]:
    """As few columns as a page is high enough for, filled one after another to the same height."""
    whole_in = _height_in(panels.values())
    count = min(_MOST_COLUMNS, math.ceil(whole_in / (TALLEST - _AROUND_IN)), len(panels))
    columns: list[dict[str, list[Row]]] = [{} for _ in range(count)]
    above_in = 0.0
    for head, boots in panels.items():
        own_in = _height_in([boots])
        middle = above_in + own_in / 2
        columns[min(int(middle * count / whole_in), count - 1)][head] = boots
        above_in += own_in
    return [column for column in columns if column]


def draw_steps(canvas: Canvas, data: Table) -> None:
    """A strip a boot, its arm's name beside it."""
    columns = _columns(_panels(rows_of(data)))
    axes = canvas.subplots(1, len(columns), squeeze=False, sharex=True)
    high_in = max(_height_in(column.values()) for column in columns)
    room_in = canvas.get_figheight() - _AROUND_IN
    image = None
    for axis, column in zip(axes[0], columns, strict=True):
        image = _column(axis, column, high_in, _PT_PER_IN * min(1.0, room_in / high_in))
        axis.set_xlabel("step of the window")
    if image is not None:
        canvas.colorbar(
            image, ax=list(axes[0]), location="bottom", fraction=0.04, aspect=40, shrink=0.6,
            pad=0.12 / canvas.get_figheight(), label="step gap over the arm's fastest twentieth",
        )  # fmt: skip


def _column(
    axis: Axes, panels: dict[str, list[Row]], high_in: float, pt_per_in: float
) -> AxesImage:
    """Arms from top to bottom, in inches; `high_in`: of the highest column, so that all agree."""
    top_in, steps, centres = 0.0, 1, []
    for boots in panels.values():
        shades = _against_fastest(boots)
        row_in = max(_NAME_IN / len(boots), _ROW_IN)
        end_in = top_in + row_in * len(boots)
        steps = max(steps, shades.shape[1])
        image = axis.imshow(
            shades, extent=(-0.5, shades.shape[1] - 0.5, end_in, top_in),
            aspect="auto", interpolation="nearest", cmap=_COLOURS, vmin=1, vmax=_SLOWEST,
        )  # fmt: skip
        axis.hlines(
            top_in + row_in * np.arange(1, len(boots)), -0.5, shades.shape[1] - 0.5,
            color="white", linewidth=min(0.8, row_in * pt_per_in / 5),
        )  # fmt: skip
        centres.append((top_in + end_in) / 2)
        top_in = end_in + _BETWEEN_IN
    axis.set_xlim(-0.5, steps - 0.5)
    axis.set_ylim(high_in, 0)
    axis.set_yticks(centres, list(panels))
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.grid(visible=False)
    return image


def _against_fastest(rows: Sequence[Row]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Shape (boots, steps): gaps over the arm's p5; NaN where a boot has fewer steps."""
    gaps: list[list[float]] = [row["step_gaps_ms"] for row in rows]
    fastest = float(np.percentile(np.concatenate(gaps), _FASTEST_PERCENT))
    filled = np.full((len(gaps), max(map(len, gaps))), np.nan)
    for place, row in enumerate(gaps):
        filled[place, : len(row)] = np.asarray(row) / max(fastest, 1e-9)
    return filled
