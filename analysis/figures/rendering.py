"""A figure as SVG, PDF or PNG, the same bytes each time.

Invariant: nothing of the clock, the machine or the user gets into the bytes; a synthetic figure
says so across itself in every form. matplotlib is imported here alone, and only when drawing.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.figures.figure import Figure, Form
from analysis.figures.style import GREY, RC
from analysis.table import Table
from records.errors import ToolMissingError
from records.limits import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_PNG_DPI = 200
# matplotlib writes the date, and its own version, unless told not to.
_METADATA: dict[Form, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


def render(figure: Figure, form: Form) -> bytes:
    """The figure's bytes in one form. ToolMissingError: matplotlib is not installed."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise ToolMissingError(
            "figures are drawn with matplotlib, which is not installed",
            remedy="pip install -e '.[figures]' in this project's environment",
        ) from error
    with mpl.rc_context(RC):  # type: ignore[arg-type]  # keys are checked by matplotlib itself
        canvas = Canvas(figsize=figure.size_in, layout="constrained")
        if figure.absent:
            _say(canvas, figure.absent)
        else:
            figure.draw(canvas, _drawable(figure.data))
        if figure.synthetic:
            _mark(canvas)
        out = io.BytesIO()
        with warnings.catch_warnings():
            # A letter that the font lacks is drawn as a box; the data beside the figure has it.
            warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from font", UserWarning)
            canvas.savefig(out, format=form, dpi=_PNG_DPI, metadata=_METADATA[form])
    return out.getvalue()


def _drawable(data: Table) -> Table:
    """Words of an engine's log as they stand: no control characters, no formula between dollars."""
    rows = (tuple(printable(cell).replace("$", r"\$") for cell in row) for row in data.rows)
    return replace(data, rows=tuple(rows))


def _say(canvas: Canvas, words: str) -> None:
    canvas.text(0.5, 0.5, words, ha="center", va="center", color=GREY, wrap=True)


def _mark(canvas: Canvas) -> None:
    canvas.text(
        0.5, 0.5, "SYNTHETIC", ha="center", va="center", rotation=25, fontsize=40,
        color=GREY, alpha=0.3, fontweight="bold", zorder=100, in_layout=False,
    )  # fmt: skip
