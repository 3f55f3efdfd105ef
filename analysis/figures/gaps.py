"""Step gaps as distributions, and beneath them how many tokens each chunk carried.

Invariant: the two stand together, because a gap says nothing of speed until one knows what came
with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.figures.figure import Figure
from analysis.figures.rows import Row, arms_of, by_window, grouped, pairs, rows_of
from analysis.figures.style import WIDE, looks
from analysis.plan_order import PlanOrder
from analysis.reading import RequestSource, Run
from analysis.table import Column, Table, number, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_GAP, _TOKENS = "step gap", "tokens per chunk"
# Shares in percent at which the distribution is told: each whole one, and the upper tail.
_SHARES = (*range(100), 99.5, 99.9, 100)
_SHOWN_SHARE = 99

_Cells = tuple[str, ...]


def gaps_figure(runs: Sequence[Run]) -> Figure:
    """Cumulative distribution of step gaps and shares of chunk sizes, by arm and window."""
    data = gaps_data(runs)
    return Figure(
        "step-gaps",
        "Step gaps, and the tokens that come with each",
        "Above: the share of step gaps that are at most so long, all boots of an arm together, "
        "requests of the ramp left out; the axis ends at the greatest 99th percentile, the rest of "
        "the tail is in the data. Below: how many tokens a chunk carried. A step of speculation "
        "sends all its tokens in one chunk, so an arm whose gaps are longer may be the faster one.",
        "Line plots above bar charts, a column for each window. The lines are cumulative "
        "distributions of step gaps in milliseconds by arm; the bars are shares of chunks with "
        "one, two, three and more tokens by arm.",
        data,
        (WIDE, 3.9),
        draw_gaps,
        absent="" if data.rows else "no usable window with two chunks in a request",
    )


def gaps_data(runs: Sequence[Run]) -> Table:
    """Quantiles of the gaps (share: cumulative) and shares of chunk sizes, by window and arm."""
    rows: list[_Cells] = []
    order = PlanOrder(run.started.plan for run in runs)
    found = _sources(runs)
    for window, arm in sorted(found, key=lambda cell: (order.window(cell[0]), order.arm(cell[1]))):
        rows += _of_cell(window, arm, found[window, arm])
    return Table(
        "step-gaps",
        "Step gaps, and tokens per chunk, by window and arm",
        (
            "Step gap: share of gaps of at most this value (linear between order statistics).",
            "Tokens per chunk: share of chunks with exactly so many tokens.",
            "Completed requests outside the ramp of usable windows, boots of an arm together.",
        ),
        (
            *words("window", "arm", "quantity"),
            Column("value"),
            *words("unit"),
            Column("share", "%"),
        ),
        tuple(rows),
    )


def _sources(runs: Sequence[Run]) -> dict[tuple[str, str], list[RequestSource]]:
    """Where the requests of each window and arm are, boot by boot."""
    found: dict[tuple[str, str], list[RequestSource]] = {}
    for run in runs:
        for boot in run.boots:
            for measured in boot.usable_windows:
                found.setdefault((measured.window.id, boot.started.arm), []).append(measured.source)
    return found


def _of_cell(window: str, arm: str, sources: Sequence[RequestSource]) -> Iterator[_Cells]:
    """The rows of one window and arm; its chunks are never held all at once."""
    gaps = Distribution()
    sizes = np.zeros(1, dtype=np.int64)
    for source in sources:
        for part in source.batches():
            steady = part.for_latency
            gaps.add(steady.gaps_ns())
            counts = np.bincount(steady.chunk_tokens, minlength=sizes.size)
            counts[: sizes.size] += sizes
            sizes = counts
    if gaps.total:
        for share, point_us in zip(_SHARES, gaps.percentiles(_SHARES), strict=True):
            yield (window, arm, _GAP, number(point_us / 1e3, 3), "ms", number(share, 2))
    for size, count in enumerate(sizes.tolist()):
        if count:
            share = number(100 * count / int(sizes.sum()), 2)
            yield (window, arm, _TOKENS, str(size), "tokens", share)


class Distribution:
    """Times counted by the microsecond, which is what the table shows; memory grows with their
    range, never with their number.
    """

    def __init__(self) -> None:
        self._values = np.zeros(0, dtype=np.int64)
        self._counts = np.zeros(0, dtype=np.int64)

    def add(self, times_ns: NDArray[np.int64]) -> None:
        """Count these times, rounded to a microsecond."""
        found, counts = np.unique((times_ns + 500) // 1000, return_counts=True)
        values, places = np.unique(np.concatenate((self._values, found)), return_inverse=True)
        weights = np.concatenate((self._counts, counts))
        self._values = values
        # bincount adds weights as doubles: whole numbers below 2**53 stay exact.
        self._counts = np.bincount(places, weights, minlength=values.size).astype(np.int64)

    @property
    def total(self) -> int:
        """How many times there are."""
        return int(self._counts.sum())

    def percentiles(self, shares: Sequence[float]) -> list[float]:
        """In microseconds, linear between order statistics (Hyndman and Fan 1996, type 7)."""
        upto = np.cumsum(self._counts)
        places = np.asarray(shares, dtype=np.float64) / 100 * (self.total - 1)
        below = np.floor(places).astype(np.int64)
        low, high = (
            self._values[np.searchsorted(upto, ranks, side="right")]
            for ranks in (below, np.minimum(below + 1, self.total - 1))
        )
        points: list[float] = (low + (high - low) * (places - below)).tolist()
        return points


def draw_gaps(canvas: Canvas, data: Table) -> None:
    """Distributions above, chunk sizes below, one column a window, one legend for all."""
    rows = rows_of(data)
    arms = arms_of(rows)
    windows = by_window(rows)
    axes = canvas.subplots(2, len(windows), squeeze=False)
    for across, (window, group) in enumerate(windows.items()):
        by_quantity = grouped(group, "quantity")
        above, below = axes[0][across], axes[1][across]
        above.set_title(f"window {window}")
        _distributions(above, arms, by_quantity.get(_GAP, []))
        _sizes(below, arms, by_quantity.get(_TOKENS, []))
        above.set_xlabel("step gap (ms)")
        below.set_xlabel("tokens per chunk")
    axes[0][0].set_ylabel("gaps at most (%)")
    axes[1][0].set_ylabel("chunks (%)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=min(len(arms), 4))


def _distributions(axis: Axes, arms: Sequence[str], rows: Sequence[Row]) -> None:
    look = looks(arms)
    by_arm = grouped(rows, "arm")
    for arm in arms:
        xs, ys = pairs(by_arm.get(arm, []), "value", "share_percent")
        axis.plot(
            xs, ys, label=arm, color=look[arm].colour, linestyle=look[arm].dashes,
            marker=look[arm].marker, markevery=(10, 20),
        )  # fmt: skip
    ends = [row["value"] for row in rows if row["share_percent"] == _SHOWN_SHARE]
    if ends:
        axis.set_xlim(0, 1.08 * max(ends))
    axis.set_ylim(0, 100)


def _sizes(axis: Axes, arms: Sequence[str], rows: Sequence[Row]) -> None:
    look = looks(arms)
    by_arm = grouped(rows, "arm")
    width = 0.8 / max(len(arms), 1)
    for place, arm in enumerate(arms):
        xs, ys = pairs(by_arm.get(arm, []), "value", "share_percent")
        shift = (place - (len(arms) - 1) / 2) * width
        axis.bar(
            [x + shift for x in xs], ys, width, color=look[arm].colour, hatch=look[arm].hatch,
            edgecolor="white", linewidth=0.3,
        )  # fmt: skip
    if rows:
        axis.set_xticks(range(1, int(max(row["value"] for row in rows)) + 1))
    axis.set_ylim(0, 100)
    axis.grid(axis="x", visible=False)
