"""The figure of verdicts: ours against each margin, in the margin's own breadth."""

from __future__ import annotations

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text

from analysis.comparing.verdict import OUTCOMES, Interval, Outcome, Verdict
from analysis.figures import render, verdicts_figure
from analysis.figures.style import RC, SMALLEST_PT
from analysis.figures.verdicts import draw_verdicts


def verdict(
    id_: str,
    outcome: Outcome,
    value: float | None = None,
    interval: Interval | None = None,
    bounds: Interval | None = None,
) -> Verdict:
    measured = "" if value is None else f"{value} %"
    return Verdict(
        id_, "text", "10 %", "%", outcome, "why", "test",
        measured=measured, value=value, interval=interval, bounds=bounds, boots=12,
    )  # fmt: skip


VERDICTS = (
    verdict("within", "reproduced", 11.0, Interval(8.0, 13.0), Interval(5.0, 15.0)),
    verdict("far", "contradicted", 90.0, Interval(80.0, 99.0), Interval(5.0, 15.0)),
    verdict("of-a-ratio", "inconclusive", 700.0, Interval(0.9, 1.2), Interval(0.95, 1.05)),
    verdict("elsewhere", "not applicable", 0.0, None, Interval(5.0, 15.0)),
    verdict("of-kind", "reproduced"),
    verdict("open", "inconclusive"),
)


@pytest.fixture(scope="module")
def canvas() -> Canvas:
    figure = verdicts_figure(VERDICTS)
    with mpl.rc_context(RC):  # type: ignore[arg-type]
        drawn = Canvas(figsize=figure.size_in, layout="constrained")
        draw_verdicts(drawn, figure.data)
        drawn.canvas.draw()
    return drawn


def _markers(canvas: Canvas, place: int) -> list[tuple[str, float]]:
    return [
        (str(line.get_marker()), float(line.get_xdata()[0]))
        for line in canvas.axes[0].lines
        if list(line.get_ydata()) == [place]
    ]


def test_a_value_stands_where_it_lies_in_its_margin(canvas: Canvas) -> None:
    assert _markers(canvas, 0) == [("o", pytest.approx(0.2))]
    # Beyond the axis: an arrow at its end.
    assert _markers(canvas, 1) == [(">", 3.0)]
    assert _markers(canvas, 3) == [("D", pytest.approx(-2.0))]


def test_a_value_in_another_unit_than_its_interval_is_not_drawn(canvas: Canvas) -> None:
    assert _markers(canvas, 2) == []
    bars = [list(line.get_xdata()) for line in canvas.axes[0].lines if 2 in line.get_ydata()]
    assert [pytest.approx([-2.0, 3.0])] == bars


def test_every_outcome_stands_in_words(canvas: Canvas) -> None:
    texts = [text.get_text() for text in canvas.findobj(Text)]
    for outcome in OUTCOMES:
        assert any(text.startswith(outcome) for text in texts)
    assert texts.count("no margin") == 2
    shown = [text for text in canvas.findobj(Text) if text.get_text().strip()]
    assert min(text.get_fontsize() for text in shown) >= SMALLEST_PT


def test_no_verdict_is_an_absent_figure() -> None:
    figure = verdicts_figure([])
    assert figure.absent
    assert b"no published claim" in render(figure, "svg")
