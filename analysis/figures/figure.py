"""What a figure is: the table it is drawn from, the words beside it, and how it is drawn.

Invariant: `draw` gets the table and nothing else, so what is drawn is what stands beside it; no
number of the records is in title, caption or alternative text, which are the same for every study.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from analysis.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Form = Literal["svg", "pdf", "png"]
FORMS: tuple[Form, ...] = get_args(Form)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `name`: the stem of its files; `size_in`: width and height in inches.

    `caption` says what is shown and how to read it; `alt` what is seen, for who does not see it.
    `absent`: why there is nothing to draw, in words; "" where there is something.
    `draw(canvas, data)` draws on an empty matplotlib figure; analysis/figures/rendering.py calls it
    with the style of all figures set.
    """

    name: str
    title: str
    caption: str
    alt: str
    data: Table
    size_in: tuple[float, float]
    draw: Callable[[Canvas, Table], None]
    synthetic: bool = False
    absent: str = ""
