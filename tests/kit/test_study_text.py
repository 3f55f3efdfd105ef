"""What a person sees on a terminal fits it, and names the files that hold the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.publish import Study, studies
from analysis.reading import read_run
from kit.commands.study_text import WIDTH, study_summary, study_text
from tests.closed_run import closed, cut_short
from tests.sealed_run import Shape, make_run, small_plan

RUN = "20261130T100000Z-test-plan-0a1b2c"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    shape = Shape(fail_last=True, void_first_window=True)
    return studies([read_run(make_run(tmp_path / RUN, small_plan(), shape))])[0]


def test_the_summary_fits_a_terminal_and_names_the_files(study: Study) -> None:
    text = study_summary(study, Path("build/tables/x"))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "build/tables/x/*.md" in text
    assert text.count(RUN) == 1
    for words in ("target backend", "jit: 1 kernels compiled", "TPOT(n-1)", "tok/step"):
        assert words in text


def test_every_table_of_a_synthetic_summary_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path / RUN, small_plan(), Shape(synthetic=True))
    text = study_summary(studies([read_run(run)])[0], Path("build/tables/x"))
    titles = [line for line in text.splitlines() if line[:1].isupper() and " by " in line]
    titles += [line for line in text.splitlines() if line.startswith("Throughput")]
    assert len(titles) == 4
    assert all(title.endswith("(SYNTHETIC)") for title in titles)
    assert max(map(len, text.splitlines())) <= WIDTH


def test_that_a_run_was_closed_is_said_once_on_a_terminal_and_by_each_table(
    tmp_path: Path,
) -> None:
    run = cut_short(tmp_path / "records" / "data" / RUN)
    closed(run)
    study = studies([read_run(run)])[0]
    assert all(any("closed: host gone" in note for note in t.notes) for t in study.tables)
    assert study_text(study).count(f"Run {RUN} was closed") == 1
    assert study_summary(study, Path("x")).count(f"Run {RUN} was closed") == 1


def test_many_arms_stand_in_several_grids(study: Study) -> None:
    first = study.tables[0]
    assert first.name == "decisions"
    rows = tuple((f"arm-{i}-with-a-long-name", *first.rows[0][1:]) for i in range(9))
    wide = replace(study, tables=(replace(first, rows=rows), *study.tables[1:]))
    text = study_summary(wide, Path("x"))
    assert max(map(len, text.splitlines())) <= WIDTH
    assert all(f"arm-{i}-" in text for i in range(9))


def test_the_full_text_has_every_column(study: Study) -> None:
    assert "acceptance, server (tok/step)" in study_text(study)
