"""A second computation of what claims print: it agrees on sound records, and tells altered code."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed_run import Shape, make_run, small_plan

from analysis import metrics
from analysis.answers import answers_of
from analysis.claiming import common_blocks, quantities, rankings
from analysis.claiming.claim import evaluate
from analysis.claiming.documents import Citation
from analysis.claiming.reading import Reading, read_study_run
from analysis.claims import claims_of
from audit.checks import basis, recount
from audit.counted import count_run, percentile
from audit.paper import PaperView, paper
from audit.recount import value_of
from audit.repository import RepositoryView
from records import schema
from records.errors import ClaimError

ROOT = Path(__file__).parents[2]
DATA = ROOT / "records" / "data"


@pytest.fixture(scope="module")
def view() -> PaperView:
    return paper(RepositoryView(ROOT, DATA))


def codes(view: PaperView, check) -> set[str]:
    repository = RepositoryView(ROOT, DATA)
    repository.once("paper", lambda: view)
    return {finding.code for finding in check(repository)}


def test_it_agrees_with_every_claim_that_it_counts(view):
    evaluation, counted = view.evaluation, 0
    for study in evaluation.studies.values():
        runs = [count_run(DATA / run / "events.jsonl") for run in sorted(study.runs)]
        for id_, value in evaluation.values.items():
            again = value_of(id_, study.id, runs) if value.claim.study == study.id else None
            if isinstance(again, str):
                assert again == value.value
            elif again is not None:
                assert math.isclose(float(value.value), again, rel_tol=1e-9, abs_tol=1e-9), id_
            counted += again is not None
    assert counted > 0.8 * len(evaluation.values)


def test_the_shipped_paper_comes_out_again(view):
    assert codes(view, recount.check) == set()


@pytest.mark.parametrize(
    ("name", "altered"),
    [
        ("mean", lambda _, arm, window, reading: len(reading.windows(arm, window)) * 99.0),
        ("median", lambda _, arm, window, reading: reading.windows(arm, window)[0].wall_ns),
        ("ratio", lambda _, one, two, f, w, reading: reading.compare(one, two, f, w) and 1.5),
        ("fastest", lambda arms, window, reading: max(reading.rank(arms, window))),
        ("compliant_percent", lambda _q, _ms, arm, w, reading: reading.windows(arm, w) and 100.0),
    ],
)
def test_a_function_that_was_altered_is_told(monkeypatch, name, altered):
    monkeypatch.setattr(rankings if name == "fastest" else quantities, name, altered)
    assert "RECOUNT01" in codes(paper(RepositoryView(ROOT, DATA)), recount.check)


def test_a_claim_that_reads_nothing_is_told(monkeypatch):
    monkeypatch.setattr(quantities, "mean", lambda *_: 1.5)
    assert "BASIS12" in codes(paper(RepositoryView(ROOT, DATA)), basis.check)


def test_decimals_that_were_taken_off_are_told(view):
    id_ = next(v.claim.id for v, _ in view.cited_values() if v.claim.digits == 2)
    value = view.evaluation.values[id_]
    rough = replace(value, printed=f"{round(float(value.value))} {value.claim.unit}")
    evaluation = replace(view.evaluation, values={**view.evaluation.values, id_: rough})
    assert codes(replace(view, evaluation=evaluation), recount.check) == {"RECOUNT02"}


TEXTS = tuple(
    f"smoke-cpu.{id_}"
    for id_ in (
        "none.c8.texts.prompts",
        "draft.c1.texts.distinct",
        "draft-vs-none.c1.texts.same",
        "draft-vs-none.c1.texts.other",
    )
)


def citing(view: PaperView, ids: tuple[str, ...]) -> PaperView:
    at = tuple(Citation("README.md", 1, "claim", id_, "") for id_ in ids)
    return replace(view, citations=at)


def test_texts_are_counted_a_second_time(view):
    assert codes(citing(view, TEXTS), recount.check) == set()


@pytest.mark.parametrize(
    ("id_", "name", "altered"),
    [
        (TEXTS[0], "prompts_answered", lambda arm, window, r: len(r.windows(arm, window))),
        (
            TEXTS[1],
            "distinct_answers",
            lambda arm, window, r: r.windows(arm, window)[0].requests + 1,
        ),
        (TEXTS[2], "same_answers", lambda one, two, window, r: r.rank((one, two), window) and 4),
        (TEXTS[3], "other_answers", lambda one, two, window, r: r.rank((one, two), window) and 0),
    ],
)
def test_a_count_of_texts_that_was_altered_is_told(monkeypatch, id_, name, altered):
    monkeypatch.setattr(quantities, name, altered)
    view = citing(paper(RepositoryView(ROOT, DATA)), (id_,))
    assert codes(view, recount.check) == {"RECOUNT01"}


def test_prompts_that_are_told_apart_otherwise_are_told(monkeypatch):
    monkeypatch.setattr(metrics, "answers_of", lambda part, prompts: answers_of(part, prompts - 1))
    view = citing(paper(RepositoryView(ROOT, DATA)), ("smoke-cpu.none.c8.texts.distinct",))
    assert codes(view, recount.check) == {"RECOUNT01"}


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40), st.floats(0, 1))
def test_percentiles_are_those_of_numpy(values, share):
    want = float(np.quantile(np.array(values, dtype=float), share))
    assert math.isclose(percentile(values, share), want, rel_tol=1e-9, abs_tol=1e-6)


def counted_twice(run: Path, edit=None) -> dict[str, tuple[float | str, float | str | None]]:
    """Every claim that sets the arms of a run side by side whose arms stand in other blocks."""
    plan = small_plan(blocks=4)
    arms = tuple(
        replace(a, blocks=b) for a, b in zip(plan.arms, ((1, 2, 3), (2, 3, 4)), strict=True)
    )
    plan = replace(plan, arms=arms)
    made = make_run(run, plan, Shape(edit=edit))
    study, again = read_study_run(made), count_run(made.events)
    found = {}
    for claim in claims_of("s", plan):
        if "-vs-" in claim.id or claim.id.count(".") < 4:
            try:
                value = evaluate(claim, Reading("s", (study,)))
            except ClaimError:
                continue
            # The gaps of both arms are the very same here: which is less is a matter of rounding.
            if value.abreast and not claim.id.endswith("step-gap.least"):
                found[claim.id] = (value.value, value_of(claim.id, "s", [again]))
    return found


def agree(found: dict[str, tuple[float | str, float | str | None]]) -> bool:
    return all(
        one == two if isinstance(one, str) else math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-9)
        for one, two in found.values()
        if two is not None
    )


def test_both_compare_arms_within_the_blocks_that_hold_both(tmp_path):
    found = counted_twice(tmp_path / "run-1")
    assert len([two for _, two in found.values() if two is not None]) > 10
    assert agree(found)


def test_boots_of_other_blocks_that_are_let_in_are_told(tmp_path, monkeypatch):
    whole = frozenset(("run-1", block) for block in range(1, 5))
    monkeypatch.setattr(common_blocks, "common_blocks", lambda _: whole)
    assert not agree(counted_twice(tmp_path / "run-1"))


RATIO = "s.draft-vs-none.c1.throughput.ratio"


def test_a_boot_moved_to_a_block_without_the_other_arm_leaves_the_comparison(tmp_path):
    """By itself the journal then asks for a boot that the plan does not (PLAN02, PLAN03)."""

    def move(event):
        if (
            isinstance(event, schema.BootStarted)
            and event.arm == "draft"
            and "b03" in event.planned
        ):
            return replace(event, planned="b01-1-draft", attempt=2)
        return event

    here, moved = (counted_twice(tmp_path / name, edit) for name, edit in
                   (("run-1", None), ("run-2", move)))  # fmt: skip
    assert agree(moved)
    assert moved[RATIO] != here[RATIO]
