"""All figures of a study, in the order in which a reader needs them.

Invariant: the same names in the same order for every study; where the records hold nothing to draw,
the figure says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.figures.boots import boots_figure
from analysis.figures.calibration import calibration_figure
from analysis.figures.decisions import decisions_figure
from analysis.figures.figure import Figure
from analysis.figures.gaps import gaps_figure
from analysis.figures.goodput import goodput_figure
from analysis.figures.steps import steps_figure
from analysis.figures.timeline import timeline_figure
from analysis.figures.variance import variance_figure
from analysis.metrics import run_metrics
from analysis.one_kind import require_one_kind
from analysis.reading import Run
from analysis.table import Table

_SYNTHETIC = "SYNTHETIC: the engine was the reference server; this says nothing of any engine."


def study_figures(runs: Sequence[Run]) -> list[Figure]:
    """The figures over these runs. FormatError when synthetic and real runs are mixed."""
    require_one_kind(runs)
    ordered = sorted(runs, key=lambda run: run.run_id)
    metrics = [m for run in ordered for m in run_metrics(run)]
    figures = [
        decisions_figure(ordered),
        boots_figure(metrics),
        variance_figure(ordered, metrics),
        steps_figure(ordered),
        gaps_figure(ordered),
        goodput_figure(metrics),
        calibration_figure(ordered),
        timeline_figure(ordered),
    ]
    if ordered and ordered[0].started.synthetic:
        return [_marked(figure) for figure in figures]
    return figures


def _marked(figure: Figure) -> Figure:
    data = figure.data
    return replace(
        figure,
        title=f"{figure.title} (SYNTHETIC)",
        caption=f"{_SYNTHETIC} {figure.caption}",
        alt=f"Synthetic. {figure.alt}",
        data=Table(
            data.name,
            f"{data.title} (SYNTHETIC)",
            (_SYNTHETIC, *data.notes),
            data.columns,
            data.rows,
        ),
        synthetic=True,
    )
