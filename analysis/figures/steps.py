"""Every step of one stream, boot by boot: when steps change their speed, and for how long.

Invariant: steps stand in the order in which they came, none averaged with another; what is dark was
slow against the fastest steps of its own arm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.figures.figure import Figure
from analysis.figures.rows import Row, arms_of, by_window, grouped, rows_of
from analysis.figures.style import TALLEST, WIDE
from analysis.plan_order import PlanOrder
from analysis.reading import Boot, MeasuredWindow, Run
from analysis.table import Column, Table, number, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

# What a row can show at the width of a page.
_MOST_STEPS = 400
_ROW_IN, _BETWEEN_IN = 0.13, 0.34
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
    height_in = 0.7 + _BETWEEN_IN * len(_panels(rows)) + _ROW_IN * len(rows)
    return Figure(
        "steps",
        "Every step of one stream, by boot",
        "Each row is one boot, each cell one step gap of its window of one stream, from left to "
        "right as they came, the ramp's requests included. The darker, the longer against the "
        "fastest twentieth of the arm's steps. One stream has one request in every step, so the "
        "steps of a row do the same work: where a row changes its shade, the engine or its host "
        "changed its speed.",
        "Strips of cells, one for each boot, in a panel for each arm; cells are step gaps in the "
        "order of time, shaded from light for the arm's fastest to dark for two and a half times "
        "as long.",
        data,
        (WIDE, min(height_in, TALLEST)),
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
    """Rows by what stands above them: the arm, and its window where there are several."""
    windows = by_window(rows)
    return {
        f"{arm}, window {window}" if len(windows) > 1 else arm: grouped(some, "arm")[arm]
        for arm in arms_of(rows)
        for window, some in windows.items()
        if arm in grouped(some, "arm")
    }


def draw_steps(canvas: Canvas, data: Table) -> None:
    """A panel an arm, a strip a boot."""
    rows = rows_of(data)
    panels = _panels(rows)
    heights = [len(boots) for boots in panels.values()]
    axes = canvas.subplots(len(panels), 1, squeeze=False, sharex=True, height_ratios=heights)
    row_pt = _PT_PER_IN * canvas.get_figheight() / len(rows)
    image = None
    for axis, (head, boots) in zip(axes[:, 0], panels.items(), strict=True):
        image = axis.imshow(
            _against_fastest(boots),
            aspect="auto", interpolation="nearest", cmap=_COLOURS, vmin=1, vmax=_SLOWEST,
        )  # fmt: skip
        axis.set_title(f"{head}, {len(boots)} boot{'s' * (len(boots) > 1)}", loc="left")
        axis.hlines(
            np.arange(1, len(boots)) - 0.5, -0.5, 1, color="white",
            linewidth=min(0.8, row_pt / 5), transform=axis.get_yaxis_transform(),
        )  # fmt: skip
        axis.set_yticks([])
        axis.grid(visible=False)
    axes[-1, 0].set_xlabel("step of the window")
    if image is not None:
        canvas.colorbar(
            image, ax=list(axes[:, 0]), location="right", fraction=0.03, pad=0.01,
            label="times the arm's fastest twentieth",
        )  # fmt: skip


def _against_fastest(rows: Sequence[Row]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Shape (boots, steps): gaps over the arm's p5; NaN where a boot has fewer steps."""
    gaps: list[list[float]] = [row["step_gaps_ms"] for row in rows]
    fastest = float(np.percentile(np.concatenate(gaps), _FASTEST_PERCENT))
    filled = np.full((len(gaps), max(map(len, gaps))), np.nan)
    for place, row in enumerate(gaps):
        filled[place, : len(row)] = np.asarray(row) / max(fastest, 1e-9)
    return filled
