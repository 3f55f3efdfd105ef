"""Published against ours: each figure with its interval beside the margin fixed beforehand.

Invariant: nothing is decided here; outcome, interval and bounds are the verdict's own. Margins are
drawn alike broad, so that claims of different units stand in one picture.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.comparing.verdict import Interval, Verdict
from analysis.figures.figure import Figure
from analysis.figures.rows import Row, rows_of
from analysis.figures.style import GREY, PALE, WIDE
from analysis.table import MISSING, Column, Table, number, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_LOOKS = {
    "reproduced": ("o", "#009E73"),
    "contradicted": ("X", "#D55E00"),
    "inconclusive": ("s", "#0072B2"),
    "not applicable": ("D", GREY),
}
_END = 3.0  # of the axis, in margins
_ROW_IN = 0.28
_WORDS_WIDTH = 32


def verdicts_figure(verdicts: Sequence[Verdict]) -> Figure:
    """A line for each verdict, in their order."""
    data = verdicts_data(verdicts)
    return Figure(
        "verdicts",
        "Published against ours",
        "Each line is a published claim. The grey band is the margin within which a figure counts "
        "as reproduced, fixed before the data and drawn equally broad for each; the line in its "
        "middle is the published figure. The marker is ours, the bar its interval; an arrow means "
        "that it lies beyond the axis. Claims of kind have no margin, and those without a record "
        "no marker: words tell the outcome.",
        "A chart of lines, one a published claim, each with a band for the margin, a marker and a "
        "bar for what was measured here, and the outcome in words.",
        data,
        (WIDE, 0.7 + _ROW_IN * max(len(data.rows), 3)),
        draw_verdicts,
        absent="" if data.rows else "no published claim",
    )


def verdicts_data(verdicts: Sequence[Verdict]) -> Table:
    """One row a verdict; value, interval and bounds in the claim's own unit."""
    return Table(
        "verdicts",
        "Published against ours",
        ("Interval and bounds in the unit of the claim; of a ratio where the test is of one.",),
        (
            *words("claim", "published", "ours", "outcome", "on"),
            Column("value"),
            Column("low"),
            Column("high"),
            Column("margin low"),
            Column("margin high"),
            Column("boots"),
        ),
        tuple(
            (
                one.id,
                one.published,
                one.measured or MISSING,
                one.outcome,
                one.stratum or MISSING,
                number(one.value, 4),
                *_ends(one.interval),
                *_ends(one.bounds),
                str(one.boots),
            )
            for one in verdicts
        ),
    )


def _ends(interval: Interval | None) -> tuple[str, str]:
    if interval is None:
        return MISSING, MISSING
    return number(interval.low, 4), number(interval.high, 4)


def draw_verdicts(canvas: Canvas, data: Table) -> None:
    """Lines from top to bottom, the words at their right."""
    rows = rows_of(data)
    axis = canvas.subplots()
    for place, row in enumerate(rows):
        _line(axis, place, row)
        axis.annotate(
            _words(row), (1, place), (8, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", color=_LOOKS[row["outcome"]][1],
        )  # fmt: skip
    axis.set_yticks(range(len(rows)), [f"{row['claim']}: {row['published']}" for row in rows])
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlim(-_END, _END)
    axis.set_xticks([-1, 0, 1], ["lower\nmargin", "published\nfigure", "upper\nmargin"])
    axis.grid(visible=False)


def _words(row: Row) -> str:
    ours = "" if row["ours"] == MISSING else f": {row['ours']}"
    return textwrap.shorten(f"{row['outcome']}{ours}", _WORDS_WIDTH, placeholder=" …")


def _line(axis: Axes, place: int, row: Row) -> None:
    low, high = row["margin_low"], row["margin_high"]
    if low is None or high is None or not high > low:
        axis.text(0, place, "no margin", color=GREY, ha="center", va="center")
        return
    axis.plot([0, 0], [place - 0.38, place + 0.38], color=GREY, linewidth=0.8)
    axis.fill_between([-1, 1], place - 0.38, place + 0.38, color=PALE, linewidth=0, zorder=0)
    marker, colour = _LOOKS[row["outcome"]]

    def at(value: float) -> float:
        return max(-_END, min(_END, float((2 * value - low - high) / (high - low))))

    ends = [row["low"], row["high"]]
    if None not in ends:
        axis.plot([at(end) for end in ends], [place, place], color=colour, linewidth=1.5)
    value = row["value"]
    # Of a ratio the interval is of another unit than the value, which then has no place here.
    if value is not None and (None in ends or ends[0] <= value <= ends[1]):
        beyond = abs(at(value)) == _END
        shown = ("<" if at(value) < 0 else ">") if beyond else marker
        axis.plot([at(value)], [place], marker=shown, color=colour, markersize=5, clip_on=False)
