"""What the client's stamps are worth: their error by concurrency, and how many chunks share a read.

Invariant: an effect smaller than the error shown here is not an effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.figures.figure import Figure
from analysis.figures.rows import grouped, pairs, rows_of
from analysis.figures.style import GREY, WIDE
from analysis.reading import Run
from analysis.table import Column, Table, number, words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_POINTS = (
    ("error_p50_us", "error, p50", "o", "#0072B2"),
    ("error_p99_us", "error, p99", "s", "#D55E00"),
    ("error_max_us", "error, greatest", "^", "#000000"),
    ("server_late_p99_us", "server behind schedule, p99", "D", "#009E73"),
)
_SHARES = (("calibration", "P", "#E69F00"), ("worst window", "X", "#56B4E9"))
_APART = 0.07  # between the markers of one calibration, so that none hides another


def calibration_figure(runs: Sequence[Run]) -> Figure:
    """Errors and merged chunks against concurrency, with the bound that the plan sets."""
    data = calibration_data(runs)
    return Figure(
        "calibration",
        "The client against a server of known schedule",
        "Left: the error of the client's stamps on this host, receive stamp minus the server's own "
        "send stamp, at each concurrency of the plan, and how far the server itself was behind its "
        "schedule; the dashed line is the plan's bound on the p99 error. Right: the share of "
        "chunks that came in one read with a later one, whose time is an upper bound, in the "
        "calibration and in the worst window that was measured.",
        "Left, on a logarithmic scale of microseconds, the median, 99th percentile and greatest "
        "error of the client by concurrency. Right, the share of merged chunks by concurrency.",
        data,
        (WIDE, 2.5),
        draw_calibration,
        absent="" if data.rows else "no calibration in these records",
    )


def calibration_data(runs: Sequence[Run]) -> Table:
    """One row a calibration: errors in microseconds, merged chunks in percent."""
    rows = [
        (
            str(c.concurrency),
            run.run_id,
            run.host_id,
            c.report.stamps,
            str(c.chunks),
            *[
                number(ns / 1e3, 1)
                for ns in (
                    c.error_p50_ns,
                    c.error_p99_ns,
                    c.error_max_ns,
                    c.server_late_p99_ns,
                    run.started.plan.bounds.calibrated_p99_ns,
                )
            ],
            number(100 * c.report.merged / c.report.chunks if c.report.chunks else None, 4),
            number(_worst_merged(run, c.concurrency), 4),
        )
        for run in runs
        for c in run.calibrations
    ]
    return Table(
        "calibration",
        "The client against a server of known schedule",
        (
            "Error: receive stamp minus the server's own send stamp.",
            "Merged: chunks that came in one read with a later one.",
        ),
        (
            Column("concurrency"),
            *words("run", "host", "stamps"),
            Column("chunks"),
            *[Column(f"error {what}", "us") for what in ("p50", "p99", "max")],
            Column("server late p99", "us"),
            Column("bound of the plan", "us"),
            Column("merged, calibration", "%"),
            Column("merged, worst window", "%"),
        ),
        tuple(sorted(rows, key=lambda row: (int(row[0]), row[1]))),
    )


def _worst_merged(run: Run, concurrency: int) -> float | None:
    shares = [
        100 * window.ended.report.merged / window.ended.report.chunks
        for boot in run.boots
        for window in boot.windows
        if window.ended is not None
        and window.ended.report.chunks
        and window.window.load.concurrency == concurrency
    ]
    return max(shares, default=None)


def draw_calibration(canvas: Canvas, data: Table) -> None:
    """Concurrencies in order, evenly spaced, several runs side by side."""
    rows = rows_of(data)
    levels = list(grouped(rows, "concurrency"))
    for level, group in grouped(rows, "concurrency").items():
        step = min(0.42, 0.8 / len(group))
        for place, row in enumerate(group):
            row["x"] = levels.index(level) + (place - (len(group) - 1) / 2) * step
    left, right = canvas.subplots(1, 2, width_ratios=(2, 1))
    for place, (key, label, marker, colour) in enumerate(_POINTS):
        xs, ys = pairs(rows, "x", key)
        shifted = [x + (place - 1.5) * _APART for x in xs]
        left.plot(shifted, ys, linestyle="none", marker=marker, color=colour, label=label)
    for bound in sorted({row["bound_of_the_plan_us"] for row in rows}):
        left.axhline(bound, color=GREY, linestyle="--", linewidth=0.9, label="bound of the plan")
    # Not a plain logarithm: an error of a fraction of a microsecond may come out negative.
    left.set_yscale("symlog", linthresh=1, linscale=0.4)
    left.set_ylim(bottom=0)
    left.set_ylabel("time (µs)")
    for place, (name, marker, colour) in enumerate(_SHARES):
        xs, ys = pairs(rows, "x", f"merged_{name.replace(' ', '_')}_percent")
        shifted = [x + (place - 0.5) * _APART for x in xs]
        right.plot(
            shifted, ys, linestyle="none", marker=marker, color=colour, label=f"merged, {name}"
        )
    right.set_ylabel("merged chunks (%)")
    top = 1.15 * max(right.get_ylim()[1], 0.5)
    right.set_ylim(-0.04 * top, top)
    for axis in (left, right):
        _concurrencies(axis, levels)
    once: dict[str, Artist] = {}
    for axis in (left, right):
        handles, labels = axis.get_legend_handles_labels()
        once |= dict(zip(labels, handles, strict=True))
    canvas.legend(list(once.values()), list(once), loc="outside lower center", ncols=4)


def _concurrencies(axis: Axes, levels: Sequence[int]) -> None:
    axis.set_xticks(range(len(levels)), [str(level) for level in levels])
    axis.set_xlim(-0.6, len(levels) - 0.4)
    axis.set_xlabel("concurrency")
    axis.grid(axis="x", visible=False)
