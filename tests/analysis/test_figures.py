"""Figures: what is drawn is what the table beside it says, the same bytes each time."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text
from sealed_run import Shape, make_run, small_plan

from analysis.figures import FORMS, Figure, render, study_figures
from analysis.figures.boots import boots_figure
from analysis.figures.decisions import decisions_figure
from analysis.figures.files import figure_files
from analysis.figures.gaps import Distribution
from analysis.figures.goodput import beaten_spans, fastest_arm
from analysis.figures.rows import grouped, pairs, rows_of
from analysis.figures.style import PALE, RC, SMALLEST_PT, TALLEST, looks
from analysis.metrics import run_metrics
from analysis.reading import Run, read_run
from analysis.streaming.large_run import read_run_in_batches
from analysis.table import as_csv, number
from records import schema
from records.errors import FormatError, ToolMissingError

NAMES = [
    "decisions",
    "boots",
    "variance",
    "steps",
    "step-gaps",
    "goodput",
    "calibration",
    "timeline",
]
TRACE = {"uuid": "GPU-1", "sm_clock_mhz": [1980, -1, 1755]}


def _sampled(event: Any) -> Any:
    """As a host with one GPU would record it."""
    if isinstance(event, schema.WindowEnded):
        return replace(event, facts={"gpu": {"present": True, "traces": [TRACE]}})
    return event


def _void(event: Any) -> Any:
    return (
        replace(event, void=("steal 70000 ppm, bound 50000",)) if hasattr(event, "void") else event
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two arms, two blocks, one boot interrupted and one failed, one window void, clocks."""
    path = tmp_path_factory.mktemp("data") / "20261130T000000Z-test-plan-aaaaaa"
    shape = Shape(interrupt_first=True, fail_last=True, void_first_window=True, edit=_sampled)
    return read_run(make_run(path, small_plan(blocks=3), shape))


@pytest.fixture(scope="module")
def figures(run: Run) -> dict[str, Figure]:
    return {figure.name: figure for figure in study_figures([run])}


def _drawn(figure: Figure) -> Canvas:
    with mpl.rc_context(RC):  # type: ignore[arg-type]
        canvas = Canvas(figsize=figure.size_in, layout="constrained")
        figure.draw(canvas, figure.data)
        canvas.canvas.draw()
    return canvas


def test_every_study_has_the_same_figures(figures: dict[str, Figure]) -> None:
    assert list(figures) == NAMES
    for figure in figures.values():
        assert figure.caption.endswith(".")
        assert figure.alt.endswith(".")
        assert not figure.absent


def test_boots_are_the_metrics_one_dot_each(run: Run, figures: dict[str, Figure]) -> None:
    rows = rows_of(figures["boots"].data)
    told = sorted((r["window"], r["boot"], r["output_tok_per_s"]) for r in rows)
    assert told == sorted(
        (m.window, m.boot, float(number(m.output_tokens_per_s, 2))) for m in run_metrics(run)
    )
    canvas = _drawn(figures["boots"])
    dots: list[float] = []
    for axis in canvas.axes[:2]:
        for line in axis.lines:
            if line.get_marker() in "os":
                dots += [float(x) for x in line.get_xdata()]
    assert sorted(dots) == sorted(r["output_tok_per_s"] for r in rows)


def test_the_spread_of_each_arm_stands_beside_its_boots(figures: dict[str, Figure]) -> None:
    figure = figures["boots"]
    for cell in grouped(rows_of(figure.data), "window").values():
        for boots in grouped(cell, "arm").values():
            values = [row["output_tok_per_s"] for row in boots]
            told = boots[0]["output_cv_percent"]
            if len(values) < 2:
                assert told is None
            else:
                assert told == pytest.approx(
                    100 * np.std(values, ddof=1) / np.mean(values), abs=0.03
                )
    texts = {text.get_text() for text in _drawn(figure).findobj(Text)}
    cvs = {row["output_cv_percent"] for row in rows_of(figure.data)} - {None}
    assert {f"{cv:.2f} %" for cv in cvs} <= texts


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figure]:
    """Twenty-four boots of two arms, whose throughput falls into two groups."""

    def in_two_groups(event: Any) -> Any:
        if isinstance(event, schema.WindowEnded) and int(event.boot[1:3]) % 3 == 0:
            longer = replace(event.report, wall_ns=event.report.wall_ns * 5 // 4)
            return replace(event, report=longer)
        return event

    path = tmp_path_factory.mktemp("many") / "20261130T000000Z-test-plan-dddddd"
    run = read_run(make_run(path, small_plan(12, requests=2), Shape(edit=in_two_groups)))
    return {figure.name: figure for figure in study_figures([run])}


def test_of_many_boots_each_is_seen(many: dict[str, Figure]) -> None:
    """No dot lies on another, though all of an arm accept alike."""
    figure = many["boots"]
    canvas = _drawn(figure)
    seen = 0
    for axis in canvas.axes:
        for line in axis.lines:
            if line.get_linestyle() == "None" and line.get_marker() != "|":
                dots = axis.transData.transform(np.column_stack(line.get_data()))
                apart = np.diff(np.sort(-dots[:, 1])) * 72 / canvas.dpi
                assert apart.min() > 0.8 * line.get_markersize()
                seen += len(dots)
    # Output of both arms, and the acceptance of one, in two windows.
    assert seen == (24 + 12) * 2


def test_however_many_arms_a_figure_fits_a_page(many: dict[str, Figure], run: Run) -> None:
    of_one = [m for m in run_metrics(run) if m.arm == "draft"]
    arms = [replace(m, arm=f"arm-{i:02}", place=(i, m.place[1])) for i in range(40) for m in of_one]
    for figure in (*many.values(), boots_figure(arms)):
        assert figure.size_in[1] <= TALLEST


def test_what_stands_beside_the_dots_hides_none(many: dict[str, Figure]) -> None:
    canvas = _drawn(many["boots"])
    for axis in canvas.axes:
        beside = [t.get_window_extent() for t in axis.texts if t.get_text().endswith("%")]
        assert beside
        for line in axis.lines:
            if len(line.get_xdata()) > 1 and line.get_color() != PALE:
                right = axis.transData.transform(np.column_stack(line.get_data()))[:, 0].max()
                assert right < min(box.x0 for box in beside)


def test_nothing_is_drawn_above_the_end_of_an_axis(tmp_path: Path) -> None:
    """No request meets the objectives of the first panel of a row, all meet those of the others."""
    plan = replace(small_plan(blocks=1), thresholds_ms=(12, 15))
    run = read_run(make_run(tmp_path / "20261130T000000Z-test-plan-cccccc", plan))
    (goodput,) = [figure for figure in study_figures([run]) if figure.name == "goodput"]
    for axis in _drawn(goodput).axes:
        low, high = axis.get_ylim()
        assert low == 0
        assert all(max(line.get_ydata()) <= high for line in axis.lines)


def test_a_window_is_named_where_its_name_fits_the_bar(many: dict[str, Figure]) -> None:
    axis = _drawn(many["timeline"]).axes[0]
    bars = [bar.get_window_extent() for bar in axis.patches]
    names = [t.get_window_extent() for t in axis.texts if t.get_text() in ("c1", "c2")]
    assert names
    for name in names:
        assert any(bar.x0 <= name.x0 and name.x1 <= bar.x1 for bar in bars)


def test_goodput_lines_are_the_rows(figures: dict[str, Figure]) -> None:
    rows = rows_of(figures["goodput"].data)
    wanted = [
        pairs(by_arm, "threshold_ms", "goodput_req_per_s")
        for by_window in grouped(rows, "window").values()
        for by_quantity in grouped(by_window, "quantity").values()
        for _, by_arm in sorted(grouped(by_quantity, "arm").items())
    ]
    axes = _drawn(figures["goodput"]).axes
    found = [
        ([float(x) for x in line.get_xdata()], [float(y) for y in line.get_ydata()])
        for axis in axes
        for line in axis.lines
    ]
    assert found == wanted


def test_where_the_fastest_arm_is_beaten() -> None:
    def row(arm: str, threshold: int, goodput: float, output: float) -> dict[str, Any]:
        return {
            "arm": arm, "threshold_ms": threshold, "goodput_req_per_s": goodput,
            "output_tok_per_s": output,
        }  # fmt: skip

    rows = [row("slow", t, 1.0, 10.0) for t in (10, 20, 40)]
    rows += [row("fast", 10, 0.0, 20.0), row("fast", 20, 0.99, 20.0), row("fast", 40, 3.0, 20.0)]
    assert fastest_arm(rows) == "fast"
    # At 20 the difference is within a boot's; at 10 it is not.
    assert beaten_spans(rows, "fast") == [(10, 15)]


def test_step_gaps_reach_from_the_least_to_the_greatest(
    run: Run, figures: dict[str, Figure]
) -> None:
    rows = rows_of(figures["step-gaps"].data)
    gaps = [
        gap
        for boot in run.boots
        for window in boot.usable_windows
        if (window.window.id, boot.started.arm) == ("c1", "none")
        for gap in window.requests.for_latency.gaps_ns() / 1e6
    ]
    mine = [r for r in rows if (r["window"], r["arm"], r["quantity"]) == ("c1", "none", "step gap")]
    assert mine[0]["value"] == pytest.approx(min(gaps), abs=1e-3)
    assert mine[-1]["value"] == pytest.approx(max(gaps), abs=1e-3)
    for group in grouped(rows, "arm").values():
        for window in grouped(group, "window").values():
            shares = [r["share_percent"] for r in window if r["quantity"] == "tokens per chunk"]
            assert sum(shares) == pytest.approx(100, abs=0.05)


@given(
    st.lists(st.lists(st.integers(0, 10**8), max_size=30), min_size=1, max_size=5).filter(any),
    st.lists(st.floats(0, 100), min_size=1, max_size=5),
)
def test_percentiles_of_batches_are_those_of_all_at_once(
    batches: list[list[int]], shares: list[float]
) -> None:
    found = Distribution()
    for batch in batches:
        found.add(np.array(batch, dtype=np.int64))
    values = [value / 1e3 for batch in batches for value in batch]
    assert found.total == len(values)
    # Each time is rounded to a microsecond first.
    assert found.percentiles(shares) == pytest.approx(np.percentile(values, shares), abs=0.501)


def test_a_run_read_in_batches_gives_the_same_figures(tmp_path: Path) -> None:
    made = make_run(tmp_path / "20261130T000000Z-test-plan-eeeeee", small_plan(2))
    held = study_figures([read_run(made)])
    batched = study_figures([read_run_in_batches(made, tmp_path / "cache", large_bytes=0)])
    assert [f.data for f in batched] == [f.data for f in held]


def test_the_timeline_keeps_what_went_wrong(figures: dict[str, Figure]) -> None:
    rows = rows_of(figures["timeline"].data)
    kinds = {"start", "warm-up", "window", "void window", "end", "SM clock"}
    assert {r["what"] for r in rows} == kinds
    notes = {r["note"] for r in rows}
    assert "interrupted: the harness died" in notes
    assert "failed: the engine ran out of memory" in notes
    assert [r["clock_mhz"] for r in rows if r["what"] == "SM clock"][:3] == [1980, None, 1755]
    labels = [tick.get_text() for tick in _drawn(figures["timeline"]).axes[0].get_yticklabels()]
    assert labels == list(grouped(rows, "boot"))


def test_a_boot_ends_where_its_journal_says(run: Run, figures: dict[str, Figure]) -> None:
    rows = rows_of(figures["timeline"].data)
    for boot in run.boots:
        mine = [r for r in rows if r["boot"] == boot.started.boot and r["what"] != "SM clock"]
        end = (boot.ended_ns - boot.started.clock.monotonic_ns) / 1e9
        assert max(r["to_s"] for r in mine) >= end - 1e-3
        if boot.outcome == "failed":
            assert [r["what"] for r in mine] == ["start"]


def test_calibration_shows_the_recorded_errors(run: Run, figures: dict[str, Figure]) -> None:
    rows = rows_of(figures["calibration"].data)
    assert [r["error_p99_us"] for r in rows] == [20.0] * len(run.calibrations)
    assert {r["bound_of_the_plan_us"] for r in rows} == {1000.0}


def test_a_decision_matrix_has_every_word_of_the_table(figures: dict[str, Figure]) -> None:
    figure = figures["decisions"]
    texts = {t.get_text().replace("\n", " ") for t in _drawn(figure).findobj(Text)}
    for row in figure.data.rows:
        assert {cell for cell in row[3:] if cell != "-"} <= texts


def test_many_arms_are_told_in_bands_and_what_is_alike_once(run: Run) -> None:
    boots = [
        replace(
            boot,
            started=replace(boot.started, boot=f"b01-1-arm{i}", arm=f"arm{i}"),
            decided=replace(boot.decided, facts={**boot.decided.facts, "spec_tokens": i % 3}),
        )
        for i in range(13)
        for boot in [next(b for b in run.boots if b.decided and b.planned)]
        if boot.decided is not None
    ]
    figure = decisions_figure([replace(run, boots=boots)])
    canvas = _drawn(figure)
    assert len(canvas.axes) == 3
    labels = {tick.get_text() for axis in canvas.axes for tick in axis.get_yticklabels()}
    assert labels == {"drafted tokens"}
    texts = " ".join(t.get_text().replace("\n", " ") for t in canvas.findobj(Text))
    assert "Alike in all arms: target backend FLASH_ATTN;" in texts


def test_no_text_is_smaller_than_print_allows(figures: dict[str, Figure]) -> None:
    for figure in figures.values():
        texts = [t for t in _drawn(figure).findobj(Text) if t.get_text().strip()]
        assert texts
        # Exponents of a logarithmic axis are set smaller than their tick by mathtext, not by us.
        assert min(t.get_fontsize() for t in texts) >= SMALLEST_PT, figure.name


def test_nothing_is_told_by_colour_alone() -> None:
    found = looks([f"arm-{i}" for i in range(8)]).values()
    assert len({(look.marker, look.dashes) for look in found}) == len(found)
    assert len({look.hatch for look in found}) == len(found)


def test_the_same_bytes_each_time(figures: dict[str, Figure]) -> None:
    for name in ("boots", "timeline"):
        first, second = (figure_files(figures[name]) for _ in range(2))
        assert first == second
        assert sorted(first) == sorted(f"{name}.{form}" for form in (*FORMS, "csv"))
        assert first[f"{name}.csv"].decode() == as_csv(figures[name].data)
        assert b"CreationDate" not in first[f"{name}.pdf"]
        assert b"dc:date" not in first[f"{name}.svg"]
        assert mpl.__version__.encode() not in first[f"{name}.svg"]


def test_records_without_a_usable_window_say_so(tmp_path: Path) -> None:
    path = tmp_path / "20261130T000000Z-test-plan-bbbbbb"
    found = {
        f.name: f
        for f in study_figures([read_run(make_run(path, small_plan(1), Shape(edit=_void)))])
    }
    assert list(found) == NAMES
    absent = {name for name, figure in found.items() if figure.absent}
    assert absent == {"boots", "variance", "steps", "step-gaps", "goodput"}
    for name in absent:
        assert b"usable" in render(found[name], "svg")


def test_no_runs_give_figures_that_say_so() -> None:
    found = study_figures([])
    assert [f.name for f in found] == NAMES
    assert all(f.absent for f in found)
    assert all(render(f, "svg") for f in found[:1])


def test_one_boot_an_arm_is_drawn_too(tmp_path: Path) -> None:
    path = tmp_path / "20261130T000000Z-test-plan-dddddd"
    for figure in study_figures([read_run(make_run(path, small_plan(1)))]):
        assert render(figure, "svg")


def test_synthetic_figures_say_so_in_themselves(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "20261130T000000Z-test-plan-cccccc"
    made = read_run(make_run(path, small_plan(1), Shape(synthetic=True)))
    for figure in study_figures([made]):
        assert figure.synthetic
        assert "SYNTHETIC" in figure.title
        assert figure.caption.startswith("SYNTHETIC")
        assert figure.data.notes[0].startswith("SYNTHETIC")
    # matplotlib notes the text that its outlines spell.
    assert b"SYNTHETIC" in render(study_figures([made])[0], "svg")
    with pytest.raises(FormatError):
        study_figures([made, run])


def test_without_matplotlib_the_remedy_is_named(
    figures: dict[str, Figure], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ToolMissingError) as caught:
        render(figures["boots"], "svg")
    assert ".[figures]" in caught.value.remedy


def test_two_runs_of_one_plan_are_told_apart(tmp_path: Path) -> None:
    runs = [
        read_run(
            make_run(tmp_path / f"20261130T00000{i}Z-test-plan-{i}{i}{i}{i}{i}{i}", small_plan(1))
        )
        for i in (1, 2)
    ]
    timeline = next(f for f in study_figures(runs) if f.name == "timeline")
    labels = [tick.get_text() for tick in _drawn(timeline).axes[0].get_yticklabels()]
    assert len(set(labels)) == len(labels) == 6
