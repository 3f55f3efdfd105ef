"""Figures as files: each in every form, with its data and its words beside it.

Invariant: what is written twice has the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.figures.figure import FORMS, Figure, Form
from analysis.figures.rendering import render
from analysis.publish import write_files
from analysis.table import as_csv


def figure_files(figure: Figure, forms: Sequence[Form] = FORMS) -> dict[str, bytes]:
    """File name -> bytes: the drawing in each form and the data as CSV."""
    drawn = {f"{figure.name}.{form}": render(figure, form) for form in forms}
    return drawn | {f"{figure.name}.csv": as_csv(figure.data).encode()}


def write_figures(
    figures: Sequence[Figure], directory: Path, forms: Sequence[Form] = FORMS
) -> list[Path]:
    """Write these figures into one directory. ToolMissingError: matplotlib is not installed."""
    return [path for one in figures for path in write_files(directory, figure_files(one, forms))]
