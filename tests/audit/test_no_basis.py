"""Runs that are sealed and sound in form, but no basis for what is claimed from them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sealed_run import Shape, small_plan

from analysis.claiming import common_blocks
from analysis.claiming.claim import evaluate
from analysis.claiming.comparison import Comparison
from analysis.claiming.documents import Citation
from analysis.claiming.evaluation import evaluate_project
from analysis.claiming.evidence import load_evidence, read_study
from analysis.claiming.reading import Reading, WindowUse
from analysis.claims import claims_of
from audit.checks import basis
from records import schema
from records.run_directory import RunDirectory
from tests.audit.claimed_paper import CELL, F1, F2, NO_EFFECT, OTHER, RATIO, TEX, Paper


def edit_all(kind: type, when: Callable[[Any], bool] = lambda _: True, **fields: Any) -> Any:
    """Change fields of every event of a kind."""

    def edit(event: Any) -> Any:
        if isinstance(event, kind) and when(event):
            return replace(event, **{k: v(event) if callable(v) else v for k, v in fields.items()})
        return event

    return edit


def drop(kind: type, when: Callable[[Any], bool] = lambda _: True) -> Any:
    """Drop every event of a kind."""
    return lambda event: None if isinstance(event, kind) and when(event) else event


def flashinfer(event: Any) -> dict[str, Any]:
    target = {**event.facts["target"], "backend": "FLASHINFER"}
    return {**event.facts, "target": target}


def fact(**facts: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda event: {**event.facts, **facts}


RUNS: dict[str, tuple[Any, set[str]]] = {
    "not bound after": (drop(schema.EngineBound, lambda e: e.phase == "after"), {"BASIS01"}),
    "model not bound before": (drop(schema.ModelBound, lambda e: e.phase == "before"), {"BASIS01"}),
    "engine changed": (
        edit_all(schema.EngineBound, lambda e: e.phase == "after", digest=OTHER),
        {"BASIS01"},
    ),
    "unknown lock": (edit_all(schema.EngineBound, lock_digest=OTHER), {"BASIS02"}),
    "driver changed": (
        edit_all(schema.HostObserved, lambda e: e.phase == "end", facts=fact(driver="580.1")),
        {"BASIS03"},
    ),
    "host changed": (
        edit_all(schema.HostObserved, lambda e: e.phase == "end", host_id="host-2"),
        {"BASIS03"},
    ),
    "another kernel in one arm": (
        edit_all(schema.EngineDecided, lambda e: "none" in e.boot, facts=flashinfer),
        {"BASIS07"},
    ),
    "another graph mode in one arm": (
        edit_all(
            schema.EngineDecided,
            lambda e: "draft" in e.boot,
            facts=fact(cudagraph_effective="PIECEWISE"),
        ),
        {"BASIS07"},
    ),
    "another cache state in one arm": (
        edit_all(
            schema.EngineDecided,
            lambda e: "draft" in e.boot,
            facts=lambda e: {
                **e.facts,
                "compile_cache": {**e.facts["compile_cache"], "state": "miss"},
            },
        ),
        {"BASIS07"},
    ),
    "another model runner in one arm": (
        edit_all(schema.EngineDecided, lambda e: "draft" in e.boot, facts=fact(model_runner="V0")),
        {"BASIS07"},
    ),
    "boots of one arm unlike": (
        edit_all(schema.EngineDecided, lambda e: re.match("b02-.-draft", e.boot), facts=flashinfer),
        {"BASIS07", "BASIS08"},
    ),
    "decisions missing": (
        drop(schema.EngineDecided, lambda e: re.match("b02-.-draft", e.boot)),
        {"BASIS11"},
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs_that_are_no_basis(paper, name):
    edit, want = RUNS[name]
    paper.project.add_run("run-3", Shape(edit=edit))
    rest_on_copy(paper)
    assert paper.codes() == want


def rest_on_copy(paper: Paper) -> None:
    """Everything claimed from run-1 is claimed from run-3, which gives the same numbers."""
    paper.rest_on("run-3")
    for name in (F1, F2):
        paper.change(name, str(paper.seal()), str(paper.seal("run-3")))


def test_the_same_run_again_is_a_basis(paper):
    paper.project.add_run("run-3")
    rest_on_copy(paper)
    assert paper.codes() == set()


def test_an_effect_within_the_calibrated_error_is_none(paper):
    paper.change(TEX, RATIO, NO_EFFECT)
    effect = float(paper.value(NO_EFFECT).split()[0])
    error_ms = 0.020
    assert paper.codes() == ({"BASIS05"} if abs(effect) <= error_ms else set())
    beyond = int(abs(effect) * 1e6) + 1
    paper.project.add_run("run-3", Shape(edit=edit_all(schema.Calibrated, error_p99_ns=beyond)))
    rest_on_copy(paper)
    assert "BASIS05" in paper.codes()


def parted_by(paper: Paper, id_: str) -> float:
    """The difference that a claim makes, ms or ms/token; or by what its ranking's first leads."""
    value = evaluate_project(paper.root, paper.project.data).value(id_)
    for comparison in value.comparisons:
        assert comparison.effect_ms is not None
        return comparison.effect_ms
    (lead,) = value.leads
    return abs(lead.values[0] - lead.values[1])


def with_stamps_off_by(paper: Paper, error_ns: float) -> None:
    """What was claimed is claimed from a run whose client's stamps err by this."""
    edit = edit_all(schema.Calibrated, error_p99_ns=int(error_ns))
    paper.project.add_run("run-3", Shape(edit=edit))
    rest_on_copy(paper)


# 16 tokens a request; the first chunk of `draft` may hold 5 of them, that of `none` 1.
@pytest.mark.parametrize("code", [set(), {"BASIS05"}], ids=["above", "below"])
@pytest.mark.parametrize(
    ("quantity", "spread"),
    [("tpot.n-1", 2 / 15), ("tpot.n-k1", 1 / 11 + 1 / 15), ("ntpot", 2 / 16)],
)
@pytest.mark.parametrize("name", ["draft-vs-none.c1.{}.p95.difference", "c1.{}.least"])
def test_an_error_is_spread_over_the_tokens_that_a_time_is_divided_by(
    paper, name, quantity, spread, code
):
    id_ = f"small.{name.format(quantity)}"
    paper.change(TEX, RATIO, id_)
    error_ns = parted_by(paper, id_) * 1e6 / spread
    with_stamps_off_by(paper, error_ns * (1.01 if code else 0.99))
    assert paper.codes() == code


def test_an_order_of_equals_is_none(paper):
    paper.change(TEX, RATIO, "small.c1.step-gap.least")
    assert parted_by(paper, NO_EFFECT) == parted_by(paper, "small.c1.step-gap.least") == 0
    assert paper.codes() == {"BASIS05"}


def test_without_a_calibration_no_order_is_told(judged, paper):
    paper.project.add_run("run-3", Shape(edit=drop(schema.Calibrated)))
    assert "BASIS05" in judged("small.c1.tpot.n-1.least", "run-3")


def test_runs_of_another_harness_are_not_pooled(paper):
    paper.project.add_run("run-3", Shape(edit=edit_all(schema.RunStarted, harness_digest=OTHER)))
    paper.rest_on("run-1", "run-3")
    assert "BASIS10" in paper.codes()


@pytest.fixture
def judged(paper) -> Callable[..., set[str]]:
    """judged(id, **changes): the codes that a value, so changed, is given."""

    def judge(id_: str, *runs: str, **changes: Any) -> set[str]:
        paper.rest_on(*(runs or ("run-1",)))
        study = load_evidence(paper.root)["small"]
        read = read_study(study, paper.project.data)
        claim = next(c for c in claims_of("small", read[0].plan) if c.id == id_)
        value = replace(evaluate(claim, Reading("small", read)), **changes)
        at = Citation("README.md", 1, "claim", id_, value.printed)
        return {finding.code for finding in basis.judge(value, read, at)}

    return judge


def test_no_void_window_is_used(judged, paper):
    study_run = read_study(load_evidence(paper.root)["small"], paper.project.data)[0]
    sound = f"{CELL}.throughput.mean"
    assert judged(sound) == set()
    run = RunDirectory(paper.project.run("run-2"))
    void = next(
        WindowUse("run-2", boot.started.boot, window, boot.started.arm)
        for boot in evaluate_runs(paper, "run-2").boots
        for window, reasons in boot.windows
        if reasons and boot.outcome == "completed"
    )
    failed = next(b for b in evaluate_runs(paper, "run-2").boots if b.outcome == "failed")
    assert run.is_sealed
    assert study_run.run_id == "run-1"
    any_claim = "small.boots.completed"
    assert judged(any_claim, "run-2", measured=(void,)) == {"BASIS04"}
    use = WindowUse("run-2", failed.started.boot, "c1", failed.started.arm)
    assert "BASIS04" in judged(any_claim, "run-2", measured=(use,))


def evaluate_runs(paper: Paper, run: str) -> Any:
    paper.rest_on(run)
    return read_study(load_evidence(paper.root)["small"], paper.project.data)[0]


def test_only_the_declared_factor_is_compared(judged):
    wrong = Comparison("draft", "none", "kv", "c1", 1, None)
    assert "BASIS06" in judged(RATIO, comparisons=(wrong,))


def test_arms_are_not_mixed_in_silence(judged):
    assert judged(RATIO, comparisons=()) == {"BASIS09"}
    assert judged("small.c1.fastest") == set()


@pytest.mark.parametrize("id_", [RATIO, NO_EFFECT, "small.c1.fastest"])
def test_arms_are_not_held_against_each_other_across_blocks(judged, paper, id_):
    """One arm's boot of a block is left out of what was measured, the other's is not."""
    used = [use for use in value_over(paper, id_).measured if use.boot[:3] != "b02"]
    odd = next(use for use in value_over(paper, id_).measured if use.boot[:3] == "b02")
    assert "BASIS14" in judged(id_, measured=(*used, odd))
    assert "BASIS14" not in judged(id_, measured=tuple(used))
    assert "BASIS14" not in judged(id_)


def test_a_boot_that_moves_to_a_block_without_the_other_arm_is_told(judged, paper, monkeypatch):
    """As where an altered function takes boots of every block."""
    plan = small_plan(blocks=3)
    arms = tuple(
        replace(arm, blocks=where) for arm, where in zip(plan.arms, ((1, 2), (2, 3)), strict=True)
    )
    paper.project.add_run("run-3", plan=replace(plan, arms=arms))
    assert "BASIS14" not in judged(RATIO, "run-3")
    everywhere = frozenset(("run-3", block) for block in (1, 2, 3))
    monkeypatch.setattr(common_blocks, "common_blocks", lambda _: everywhere)
    assert "BASIS14" in judged(RATIO, "run-3")


def value_over(paper: Paper, id_: str) -> Any:
    return evaluate_project(paper.root, paper.project.data).value(id_)


def test_a_second_run_changes_no_claim(paper):
    def all_values() -> dict[str, Any]:
        values = evaluate_project(paper.root, paper.project.data).values
        return {id_: (v.value, v.printed, v.lines, v.measured) for id_, v in values.items()}

    before = all_values()
    paper.project.add_run("run-3", Shape(scale_ppm=900_000))
    assert all_values() == before
    assert paper.codes() == set()


def test_a_run_that_is_gone_leaves_its_claims_without_value(paper):
    shutil.rmtree(paper.project.run("run-1"))
    assert paper.codes() == {"CLAIM03", "CLAIM05", "FIND05"}
