"""What the engine decided in each arm, as a matrix: the first thing to look at.

Invariant: words as they stand in the records; what was not logged is shown as not logged.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.conduct_tables import decisions_table
from analysis.figures.figure import Figure
from analysis.figures.style import GREY, PALE, SMALLEST_PT, WIDE
from analysis.reading import Run
from analysis.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_LEFT_OUT = ("arm", "boots", "version")
_TINTS = ("#FFFFFF", "#BBDCEE", "#FBD9B5", "#BFE6D8", "#EFD3E2", "#FFF0B8")
_SILENT = ("unlogged", "same or unlogged", "no draft model", "-")
_NAMES = {"chosen": "target backend, chosen"}
_LINE_IN = 0.125
_MOST_ARMS = 6
_CHARACTERS = 66  # of 7 pt, capitals, in all columns together

_Cells = tuple[str, ...]


def decisions_figure(runs: Sequence[Run]) -> Figure:
    """A column for each arm, a row for each decision."""
    data = decisions_table(runs)
    return Figure(
        "decisions",
        "What the engine decided, by arm",
        "Read from the engine's own log. Within a row, cells of one tint hold the same word. Two "
        "arms that differ in more rows than the factor they are compared in are no comparison of "
        "that factor. Grey words: the engine did not log it, or there is nothing to decide.",
        "A matrix of words. Columns are arms, rows are decisions: attention backends and KV-cache "
        "types of target and draft, speculation, CUDA graphs, model runner, compile cache.",
        data,
        (WIDE, _height(data)),
        draw_decisions,
        absent="" if data.rows else "no boot that says what it decided",
    )


def _shown(data: Table) -> list[int]:
    return [i for i in _decisions(data) if i not in _alike(data)]


def _decisions(data: Table) -> list[int]:
    return [i for i, column in enumerate(data.columns) if column.name not in _LEFT_OUT]


def _alike(data: Table) -> list[int]:
    """Of many arms: rows with one word for all, which are told in a line of their own."""
    if len(data.rows) <= _MOST_ARMS:
        return []
    return [i for i in _decisions(data) if len({row[i] for row in data.rows}) == 1]


def _told_alike(data: Table) -> str:
    told = [f"{_name(data, place)} {data.rows[0][place]}" for place in _alike(data)]
    return textwrap.fill(f"Alike in all arms: {'; '.join(told)}.", 105) if told else ""


def _name(data: Table, place: int) -> str:
    name = data.columns[place].name
    return _NAMES.get(name, name)


def _bands(data: Table) -> list[tuple[_Cells, ...]]:
    """The arms in bands of equal breadth, each narrow enough for its words."""
    rows = data.rows
    bands = -(-len(rows) // _MOST_ARMS) or 1
    breadth = -(-len(rows) // bands)
    return [rows[i : i + breadth] for i in range(0, len(rows), breadth)]


def _wrapped(cell: str, arms: int) -> str:
    width = int(_CHARACTERS / max(arms, 3))
    if len(cell) <= width:
        return cell
    parts = re.findall(r".+?(?:[-_ ]|$)", cell)
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def _heights(data: Table, band: Sequence[_Cells], breadth: int) -> list[float]:
    """Of each row shown, in inches, with words wrapped for so many columns."""
    return [
        0.06 + _LINE_IN * max(_wrapped(row[place], breadth).count("\n") + 1 for row in band)
        for place in _shown(data)
    ]


def _height(data: Table) -> float:
    if not data.rows:
        return 1.5
    bands = _bands(data)
    breadth = max(map(len, bands))
    heads = [max(_head(row, breadth).count("\n") + 1 for row in band) for band in bands]
    below = _told_alike(data)
    return (
        sum(sum(_heights(data, band, breadth)) for band in bands)
        + sum(0.15 + 1.25 * _LINE_IN * lines for lines in heads)
        + (0.1 + _LINE_IN * (below.count("\n") + 1) if below else 0)
    )


def draw_decisions(canvas: Canvas, data: Table) -> None:
    """Cells as tall as their longest word wrapped, arms above, decisions to the left."""
    bands = _bands(data)
    breadth = max(map(len, bands))
    ratios = [sum(_heights(data, band, breadth)) for band in bands]
    axes = canvas.subplots(len(bands), 1, squeeze=False, height_ratios=ratios)
    for (axis,), band in zip(axes, bands, strict=True):
        _band(axis, data, band, breadth)
    if below := _told_alike(data):
        canvas.supxlabel(below, fontsize=SMALLEST_PT, color=GREY)


def _band(axis: Axes, data: Table, band: Sequence[_Cells], breadth: int) -> None:
    top, centres, names = 0.0, [], []
    for place, height in zip(_shown(data), _heights(data, band, breadth), strict=True):
        tints = _tints(data, place)
        for across, row in enumerate(band):
            _cell(axis, (across, top, height), _wrapped(row[place], breadth), tints[row[place]])
        centres.append(top + height / 2)
        names.append(_name(data, place))
        top += height
    axis.set_xticks([i + 0.5 for i in range(len(band))], [_head(row, breadth) for row in band])
    axis.set_yticks(centres, names)
    axis.set_xlim(0, breadth)
    axis.set_ylim(top, 0)
    axis.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(False)


def _tints(data: Table, place: int) -> dict[str, str]:
    """A tint for each word of one row of the matrix, white for the commonest."""
    cells = [row[place] for row in data.rows]
    order = sorted(set(cells), key=lambda cell: (-cells.count(cell), cells.index(cell)))
    return {cell: _TINTS[i % len(_TINTS)] for i, cell in enumerate(order)}


def _cell(axis: Axes, at: tuple[float, float, float], words: str, tint: str) -> None:
    across, top, height = at
    axis.fill_between(
        [across, across + 1], top, top + height, facecolor=tint, edgecolor=PALE, linewidth=0.6
    )
    silent = words.replace("\n", " ") in _SILENT
    axis.text(
        across + 0.5, top + height / 2, words, ha="center", va="center", fontsize=SMALLEST_PT,
        color=GREY if silent else "black", linespacing=1.05,
    )  # fmt: skip


def _head(row: _Cells, arms: int) -> str:
    boots = "boot" if row[1] == "1" else "boots"
    return f"{_wrapped(row[0], arms)}\n{row[1]} {boots}"
