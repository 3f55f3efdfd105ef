"""Figures of a study: `study_figures(runs)` makes them, `render(figure, form)` gives their bytes.

Invariant: a figure is drawn from its own table and from nothing else, so that the file beside it
holds all that it shows.
"""

from analysis.figures.figure import FORMS, Figure, Form
from analysis.figures.rendering import render
from analysis.figures.study import study_figures
from analysis.figures.verdicts import verdicts_figure

__all__ = ["FORMS", "Figure", "Form", "render", "study_figures", "verdicts_figure"]
