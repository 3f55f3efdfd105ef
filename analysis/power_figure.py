"""What a plan's boots can tell, drawn over their number.

Invariant: drawn from its table alone, like every figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.figures.figure import Figure
from analysis.figures.rows import grouped, pairs, rows_of
from analysis.figures.style import GREY, WIDE, looks
from analysis.power_sources import Source
from analysis.power_tables import spread_found_anyhow
from analysis.statistics.planning import (
    Design,
    cv_factors,
    detectable_ratio,
    detectable_spread,
    smallest_margin,
)
from analysis.table import Column, Table, number, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_FIRST, _LEAST_REACH, _POINTS = 3, 48, 14
_PANELS = ("CV interval", "ratio of two arms", "ratio of spreads")
_LABELS = ("multiple of the CV found", "difference, margin (%)", "ratio of SDs")
_FOUND, _MARGIN = "found", "margin"
# Names of arms up to so many characters stand four beside each other.
_SHORT = 22
_TICKS = (3, 6, 12, 24, 48, 96, 192, 384, 768, 1536)
# Larger ratios of spreads than this are no longer a question of how many boots.
_SPREAD_END = 12.0


def power_figure(sources: Sequence[Source], design: Design) -> Figure:
    """Interval of a CV, smallest differences and margins, and spreads, over the number of boots."""
    return Figure(
        "power",
        "What so many boots can tell",
        "Over the number of boots of an arm on each host. Left: 95 % interval of a CV as a "
        "multiple of its estimate. Middle: smallest difference from an arm of the same spread that "
        "a paired t test finds (filled), and narrowest margin within which equal arms are found "
        "equivalent (hollow). Right: smallest ratio of two SDs that is found, by F and by "
        "Brown-Forsythe. The grey line marks the plan.",
        "Three panels of falling curves over the number of boots.",
        Table(
            "power",
            "Over the number of boots",
            (f"Design: {design.boots} boots of an arm on {_hosts(design.hosts)}.",),
            (*words("panel", "curve", "kind"), Column("boots"), Column("value"), Column("plan")),
            tuple(_curves(sources, design)),
        ),
        (WIDE, 3.0),
        draw_power,
    )


def draw_power(canvas: Canvas, data: Table) -> None:
    """A panel beside the other, all of them on log scales; the arms' names below."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

    rows = rows_of(data)
    axes = canvas.subplots(1, len(_PANELS))
    arms = looks(row["curve"] for row in rows if row["panel"] == _PANELS[1])
    for axis, panel, label in zip(axes, _PANELS, _LABELS, strict=True):
        mine = [row for row in rows if row["panel"] == panel]
        curves = grouped(mine, "curve")
        for name, look in (arms if panel == _PANELS[1] else looks(curves)).items():
            for kind, points in grouped(curves[name], "kind").items():
                x, y = pairs(points, "boots", "value")
                face = "white" if kind == _MARGIN else look.colour
                axis.plot(
                    x, y, color=look.colour, linestyle=look.dashes, marker=look.marker,
                    markersize=3.2, markerfacecolor=face, linewidth=0.9, label=name,
                )  # fmt: skip
        axis.axvline(rows[0]["plan"], color=GREY, linewidth=0.8, zorder=0)
        axis.set_xscale("log")
        axis.set_yscale("log")
        last = max(row["boots"] for row in mine)
        ticks = [tick for tick in _TICKS if tick <= last]
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set(title=panel, xlabel="boots of an arm on a host", ylabel=label)
        if panel != _PANELS[1]:
            axis.legend(loc="upper right")
    axes[2].set_ylim(top=_SPREAD_END)
    handles, names = axes[1].get_legend_handles_labels()
    first = dict(zip(names[::-1], handles[::-1], strict=True))
    beside = 4 if max(map(len, arms)) <= _SHORT else 2
    canvas.legend(
        [first[name] for name in arms], list(arms), loc="outside lower center",
        ncols=min(beside, len(arms)), title="middle: found, filled; margin, hollow",
        title_fontsize=7,
    )  # fmt: skip


def _curves(sources: Sequence[Source], design: Design) -> Iterator[tuple[str, ...]]:
    widest = max(source.cv for source in sources)
    found: list[tuple[str, str, str, Callable[[Design], float]]] = [
        (_PANELS[0], "high", _FOUND, lambda d: cv_factors(d, widest)[1] / widest),
        (_PANELS[0], "low", _FOUND, lambda d: cv_factors(d, widest)[0] / widest),
    ]
    for source in sources:
        found += [
            (_PANELS[1], source.name, _FOUND, _differences(source.cv)),
            (_PANELS[1], source.name, _MARGIN, _margins(source.cv)),
        ]
    found += [
        (_PANELS[2], "Brown-Forsythe", _FOUND, spread_found_anyhow),
        (_PANELS[2], "F", _FOUND, detectable_spread),
    ]
    for panel, curve, kind, value in found:
        for boots in _grid(design.boots):
            told = value(replace(design, boots=boots))
            yield panel, curve, kind, str(boots), number(told, 4), str(design.boots)


def _differences(cv: float) -> Callable[[Design], float]:
    return lambda design: 100 * (detectable_ratio(design, cv, cv) - 1)


def _margins(cv: float) -> Callable[[Design], float]:
    return lambda design: 100 * smallest_margin(design, cv, cv)


def _grid(boots: int) -> list[int]:
    """Numbers of boots from 3 to twice the plan's or more, evenly on a log scale."""
    last = max(_LEAST_REACH, 2 * boots)
    step = math.log(last / _FIRST) / (_POINTS - 1)
    return sorted({round(_FIRST * math.exp(i * step)) for i in range(_POINTS)} | {boots})


def _hosts(number: int) -> str:
    return f"each of {number} hosts" if number > 1 else "one host"
