"""A run that was closed: its whole blocks count, the one that its host left open never does."""

from __future__ import annotations

import json
from pathlib import Path

import closed_run
import pytest
import sealed_run

from analysis.claiming.reading import Reading, StudyRun, read_study_run
from analysis.comparing.soundness import unsound
from analysis.conduct_tables import void_table
from analysis.exporting.in_toto import Outcome, statement
from analysis.exporting.table_files import about_runs
from analysis.metrics import run_metrics
from analysis.reading import Run, read_run
from analysis.report.run_views import run_view, unused_views
from analysis.report.sources import SourceBook
from analysis.study import COUNTS, merge, outcomes
from analysis.study_tables import merged_tables
from analysis.tables import study_tables
from analysis.trace import run_trace
from analysis.typeset.provenance import RunName, records_text
from analysis.typeset.runs import runs_tex
from audit.counted import count_run
from audit.recount import value_of
from records.digest import Digest
from records.plan import PlannedBoot, boot_order
from records.run_directory import RunDirectory
from records.schema import RunClosed

PLAN = sealed_run.small_plan()
BOOTS = boot_order(PLAN)


def closed(tmp_path: Path, whole_boots: int = 3, name: str = "run-1") -> RunDirectory:
    """Closed after one block, and `whole_boots` - 2 boots of the second."""
    run = closed_run.cut_short(tmp_path / "records" / "data" / name, whole_boots, PLAN)
    closed_run.closed(run)
    return run


def of_block(block: int) -> list[PlannedBoot]:
    return [boot for boot in BOOTS if boot.block == block]


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return closed(tmp_path)


@pytest.fixture
def run(directory: RunDirectory) -> Run:
    return read_run(directory)


@pytest.fixture
def study_run(directory: RunDirectory) -> StudyRun:
    return read_study_run(directory)


def test_the_boot_under_way_was_interrupted(run: Run) -> None:
    last = run.boots[-1]
    assert (last.ended, last.outcome) == (None, "interrupted")
    assert last.cause == "its host went away for good"
    assert run.ended is None
    assert run.closed is not None
    assert run.closed.interrupted == last.started.boot


def test_no_figure_is_made_of_a_block_that_was_cut_off(run: Run) -> None:
    cut_off = run.boots[-2]
    assert (cut_off.outcome, cut_off.usable_windows, cut_off.peer_windows) == ("completed", [], [])
    assert {metrics.block for metrics in run_metrics(run)} == {1}
    reasons = {row[1]: row[4] for row in void_table([run]).rows}
    assert reasons == {
        cut_off.started.boot: "completed: its block was cut off: the host went away for good",
        run.boots[-1].started.boot: "interrupted: its host went away for good",
    }


def test_in_a_study_its_whole_block_counts_and_no_other(study_run: StudyRun) -> None:
    (study,) = merge([study_run])
    assert {one.block: one.why for one in study.executions} == {
        1: COUNTS,
        2: "cut off: its host went away for good",
    }
    assert {metrics.block for one in study.runs for metrics in one.metrics} == {1}
    ends = {planned: outcome for planned, (outcome, _) in outcomes(study).items()}
    assert {planned.block for planned, end in ends.items() if end == "completed"} == {1}
    assert {planned.block for planned, end in ends.items() if end == "missing"} == {2}


def test_another_run_carries_the_missing_block_out(tmp_path: Path, study_run: StudyRun) -> None:
    other = sealed_run.make_run(
        tmp_path / "records" / "data" / "run-2", PLAN, sealed_run.Shape(blocks=(2,))
    )
    (study,) = merge([study_run, read_study_run(other)])
    assert {(one.run, one.block): one.counts for one in study.executions} == {
        ("run-1", 1): True,
        ("run-1", 2): False,
        ("run-2", 2): True,
    }


def test_a_run_without_a_whole_block_gives_no_figure(tmp_path: Path) -> None:
    directory = closed(tmp_path, whole_boots=1)
    assert run_metrics(read_run(directory)) == []
    (study,) = merge([read_study_run(directory)])
    assert [one.counts for one in study.executions] == [False, False]
    assert study.runs == ()


def test_claims_and_their_second_computation_leave_the_open_block_out(
    directory: RunDirectory, study_run: StudyRun
) -> None:
    reading = Reading("s", (study_run,))
    arm = of_block(2)[0].arm  # its boot of the second block completed
    assert [window.block for window in reading.windows(arm, "c1")] == [1]
    assert [boot.planned.block for boot in reading.boots(arm)] == [1]
    assert len(reading.decisions(arm)) == 1
    counted = count_run(directory.events)
    assert value_of(f"s.{arm}.boots.completed", "s", [counted]) == 1
    assert {window.boot[:3] for window in counted.windows} == {"b01"}
    assert set(counted.outcomes) == {boot.id for boot in of_block(1)}


def test_it_may_be_evidence_though_nothing_was_bound_after(study_run: StudyRun) -> None:
    assert unsound([study_run]) == ""


def test_it_is_told_wherever_it_is_shown(directory: RunDirectory, run: Run) -> None:
    studied = read_study_run(directory)
    data = directory.path.parent
    word = RunClosed.WORD
    for table in study_tables([run]):
        assert f"Run run-1 was {word} (the lease was over)" in table.notes[0]
        assert "blocks carried out: 1 of 2" in table.notes[0]
    (study,) = merge([studied])
    assert study.told.endswith(f"; {word}: run-1")
    assert f"{word}: run-1" in merged_tables([study])[0].notes[0]
    trace = run_trace(studied, data)
    assert (trace.closed, trace.engine_after) == (f"{word} (the lease was over)", "unbound")
    view = run_view(run, trace, "run-1")
    told = "3 completed, 0 failed, 1 interrupted, 0 not begun, of 4 planned boots"
    assert (view.ended, view.outcome) == ("", f"{told}; {trace.closed}")
    assert dict(view.digests)["engine after the run"] == "not bound: the host was gone"
    unused = unused_views([run], SourceBook({"run-1": studied}, data, {"run-1": data}))
    assert {one.boot: one.kind for one in unused} == {
        run.boots[-2].started.boot: "completed",
        run.boots[-1].started.boot: "interrupted",
    }
    seals = {"run-1": str(directory.seal_digest)}
    assert about_runs([run], seals)["runs"][0]["state"] == trace.closed
    seal, journal = directory.seal_digest, Digest.of(directory.events.read_bytes())
    stated = json.loads(statement(run, journal, seal, Outcome((), (), (), seal)))
    assert stated["subject"][0]["annotations"]["state"] == trace.closed
    name = RunName("R1", directory.seal_digest, closed=True)
    typeset = runs_tex({"run-1": studied}, {"run-1": name}, data).decode()
    assert r"\kitrunrow{state}{closed: host gone (the lease was over)}" in typeset
    assert r"\kitrunrow{engine, after them}{not bound: the host was gone}" in typeset
    lines = Reading("s", (studied,))
    lines.boots()
    assert f", {word})" in records_text(lines.lines, {"run-1": name})
