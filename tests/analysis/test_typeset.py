"""What is generated for the paper: entries, ranges of lines, runs, figures that nobody mentions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed_run import make_run, small_plan

from analysis.claiming.evidence import Study
from analysis.claiming.reading import Line, read_study_run
from analysis.figures import study_figures
from analysis.reading import read_run
from analysis.typeset.more_figures import more_figures_tex, shown_figures
from analysis.typeset.provenance import RunName, records_text
from analysis.typeset.runs import newest_record, run_names, runs_tex
from analysis.typeset.words import code, escaped, sentence
from records.digest import Digest
from records.run_directory import RunDirectory

RUN = "20261130T000000Z-test-plan-aaaaaa"
NAMES = {"one": RunName("R1", Digest.of(b"one")), "two": RunName("R2", Digest.of(b"two"))}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return make_run(tmp_path_factory.mktemp("data") / RUN, small_plan(1))


def test_lines_are_told_by_run_neighbours_as_ranges() -> None:
    lines = [Line("two", 4), *[Line("one", seq) for seq in (8, 0, 1, 2)]]
    found = records_text(lines, NAMES)
    assert re.sub(r"\(seal .*?\) ", "", found) == (
        r"\kitrun{one}{R1} lines 1\textendash{}3, 9; \kitrun{two}{R2} line 5"
    )
    assert NAMES["one"].seal.hex[:8] in found
    assert "R1" not in records_text([Line("three", 1)], NAMES)
    assert records_text([], NAMES) == "none"


def test_a_run_is_told_with_its_digests_and_no_name_of_its_host(directory: RunDirectory) -> None:
    run = read_study_run(directory)
    studies = {"s": Study("s", "test-plan", {RUN: directory.seal_digest})}
    names = run_names(studies, {RUN: run})
    assert names == {RUN: RunName("R1", directory.seal_digest)}
    told = runs_tex({RUN: run}, names, directory.path.parent).decode()
    plain = told.replace(r"\allowbreak{}", "").replace("-{}", "-")
    for digest in (directory.seal_digest, run.started.plan_digest, run.started.harness_digest):
        assert str(digest).partition(":")[2] in plain
    assert "host-1" in plain  # the salted id of made-up runs
    assert r"\kitrunrow{engine, after them}{the same}" in plain.replace("-{}", "-")
    assert "not in the records" in plain  # this host told no CPU
    assert newest_record({RUN: run}) == run.started.clock.realtime_ns // 10**9
    assert newest_record({}) == 0


def test_a_figure_that_no_section_shows_stands_in_the_appendix(
    directory: RunDirectory, tmp_path: Path
) -> None:
    sections = tmp_path / "paper" / "sections"
    sections.mkdir(parents=True)
    (sections / "a.tex").write_text(
        "\\kitfigure{s/boots}{fig:b}{Boots.}\n% \\kitfigure{s/goodput}{fig:g}{Not shown.}\n",
        encoding="utf-8",
    )
    shown = shown_figures(tmp_path)
    assert shown == {"s/boots"}
    figures = {"s": study_figures([read_run(directory)])}
    told = more_figures_tex(figures, shown).decode()
    assert "{s/boots}" not in told
    assert r"\kitfigure{s/goodput}" in told
    everything = {f"s/{figure.name}" for figure in figures["s"]}
    assert b"section" not in more_figures_tex(figures, everything)


@given(st.text(max_size=60))
def test_no_text_of_a_record_is_a_command(text: str) -> None:
    # Every command and brace that comes out is one of ours, with its own empty pair.
    rest = re.sub(r"\\[A-Za-z]+\{\}|\\ensuremath\{\\[a-z]+\}|\\[&%$#_{}]|-\{\}", "", escaped(text))
    assert not set(rest) & set("\\{}$&#%_^")


def test_a_digest_may_break_and_a_sentence_begins_with_a_capital() -> None:
    assert code("a" * 24).count(r"\allowbreak{}") == 2
    assert sentence("mean over boots") == "Mean over boots."
    assert sentence("p95 of gaps.") == "p95 of gaps."
