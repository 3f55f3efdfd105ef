"""How all figures look: sizes, colours, markers and hatches, for print and for the colour-blind.

Invariant: no text is smaller than 7 pt at the size printed, and whatever a colour tells apart, a
marker, a dash or a hatch tells apart too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# Inches: the whole width of the text, and its height less that of a caption.
WIDE, TALLEST = 6.3, 8.0
SMALLEST_PT = 7.0

# M. Okabe and K. Ito, "Color Universal Design" (2008), without yellow, which is too light on paper.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_DASHES: tuple[tuple[int, tuple[float, ...]], ...] = (
    (0, ()),
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (5, 1.5, 1.2, 1.5)),
)
# Of lines alone: a hatch of dots is a hundred and more kilobytes of circles in an SVG.
_HATCHES = ("", "////", "||||", "xxxx", "\\\\\\\\", "----", "++++", "//--")

GREY = "#666666"
PALE = "#DDDDDD"
MARK = "#D55E00"

# Settings of matplotlib (its "rcParams") under which every figure is drawn.
RC: dict[str, object] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": SMALLEST_PT,
    "ytick.labelsize": SMALLEST_PT,
    "legend.fontsize": SMALLEST_PT,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "hatch.linewidth": 0.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    # The same bytes each time: ids in SVG come from a hash of this, and no clock is read.
    "svg.hashsalt": "spec-fp8-reproduction-kit",
    # Glyphs as outlines: the same picture where the font is not installed.
    "svg.fonttype": "path",
    # TrueType outlines in PDF: Type 3 fonts are refused by some printers and publishers.
    "pdf.fonttype": 42,
    "path.simplify": False,
}


@dataclass(frozen=True, slots=True)
class Look:
    """How one arm looks in every panel of a figure."""

    colour: str
    marker: str
    dashes: tuple[int, tuple[float, ...]]
    hatch: str


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name, in order of first mention; the same names look the same everywhere."""
    found: dict[str, Look] = {}
    for name in names:
        if name not in found:
            i = len(found)
            found[name] = Look(
                _COLOURS[i % len(_COLOURS)],
                _MARKERS[i % len(_MARKERS)],
                _DASHES[i % len(_DASHES)],
                _HATCHES[i % len(_HATCHES)],
            )
    return found
