"""Arms are held against each other within the blocks that hold them all, and nowhere else."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed_run import Shape, make_run, small_plan

from analysis.claiming.claim import Value, evaluate
from analysis.claiming.common_blocks import abreast, common_blocks, within
from analysis.claiming.evaluation import Evaluation
from analysis.claiming.reading import Reading, StudyRun, read_study_run
from analysis.claims import claims_of
from analysis.measure_tables import dispersion_table, goodput_table, latency_table
from analysis.trace import trace
from records import schema
from records.errors import ClaimError
from records.plan import Plan
from records.run_directory import RunDirectory

RATIO = "s.draft-vs-none.c1.throughput.ratio"
DIFFERENCE = "s.draft-vs-none.c1.ntpot.p95.difference"
FASTEST = "s.c1.fastest"
Made = Callable[..., StudyRun]


def blocked(draft: tuple[int, ...], none: tuple[int, ...], blocks: int = 4) -> Plan:
    """The small plan with its arms in these blocks, and prompts that are sent again."""
    plan = small_plan(blocks=blocks)
    arms = tuple(
        replace(arm, blocks=where) for arm, where in zip(plan.arms, (draft, none), strict=True)
    )
    again = tuple(replace(w, prompts=replace(w.prompts, unique=False)) for w in plan.windows)
    return replace(plan, arms=arms, windows=again)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    def make(plan: Plan, name: str = "run-1", edit: Any = None) -> StudyRun:
        run = make_run(tmp_path / name, plan, Shape(edit=edit))
        return read_study_run(RunDirectory(run.path))

    return make


def value(id_: str, *runs: StudyRun) -> Value:
    (claim,) = [one for one in claims_of("s", runs[0].plan) if one.id == id_]
    return evaluate(claim, Reading("s", runs))


def throughputs(run: StudyRun, arm: str, *blocks: int) -> list[float]:
    return [
        one.output_tokens_per_s
        for one in run.metrics
        if (one.arm, one.window) == (arm, "c1") and one.block in blocks
    ]


def test_a_ratio_is_of_the_blocks_that_hold_both_arms(made: Made) -> None:
    run = made(blocked((1, 2, 3), (2, 3, 4)))
    found = value(RATIO, run)
    means = [statistics.fmean(throughputs(run, arm, 2, 3)) for arm in ("draft", "none")]
    assert found.value == means[0] / means[1]
    everywhere = [statistics.fmean(throughputs(run, a, 1, 2, 3, 4)) for a in ("draft", "none")]
    assert found.value != everywhere[0] / everywhere[1]
    assert {use.boot[:3] for use in found.measured} == {"b02", "b03"}
    assert found.blocks_told == ("blocks 2 and 3 alone, which hold all of these arms",)


def test_what_is_not_measured_is_not_noted_as_read(made: Made) -> None:
    run = made(blocked((1, 2, 3), (2, 3, 4)))
    lines = {line.seq for line in value(RATIO, run).lines}
    left_out = [seqs for (boot, _), seqs in run.lines.windows.items() if boot[:3] in ("b01", "b04")]
    assert left_out
    assert not [seq for seqs in left_out for seq in seqs if seq in lines]


@pytest.mark.parametrize("id_", [RATIO, DIFFERENCE, FASTEST])
def test_arms_without_a_block_in_common_are_not_compared(made: Made, id_: str) -> None:
    """Of the plan one block holds both; the run has it for one alone."""
    run = made(blocked((1, 2), (2, 3), blocks=3), edit=failing("b02", "draft"))
    with pytest.raises(ClaimError, match="no block holds") as caught:
        value(id_, run)
    assert "draft: block 1; none: blocks 2 and 3" in caught.value.message


def test_means_and_spreads_of_one_arm_are_of_all_its_blocks(made: Made) -> None:
    run = made(blocked((1, 2, 3), (2, 3, 4)))
    found = value("s.draft.c1.throughput.mean", run)
    assert found.value == statistics.fmean(throughputs(run, "draft", 1, 2, 3))
    assert found.blocks_told == ()


def test_where_all_blocks_hold_all_arms_nothing_is_said_of_them(made: Made) -> None:
    assert value(RATIO, made(small_plan(blocks=2))).blocks_told == ()


def test_a_block_whose_window_is_void_for_one_arm_counts_for_neither(made: Made) -> None:
    def void(event: Any) -> Any:
        if not (isinstance(event, schema.WindowEnded) and event.window == "c1"):
            return event
        mine = event.boot.startswith("b02") and event.boot.endswith("none")
        return replace(event, void=("jit: 1 kernels compiled in it",)) if mine else event

    run = made(small_plan(blocks=3), edit=void)
    found = value(RATIO, run)
    assert {use.boot[:3] for use in found.measured} == {"b01", "b03"}
    assert found.blocks_told == ("blocks 1 and 3 alone, which hold all of these arms",)
    assert value("s.draft-vs-none.c2.throughput.ratio", run).blocks_told == ()


def test_blocks_of_two_runs_are_not_one(made: Made) -> None:
    """One run lacks one arm of the block, the other the other: boots of two hosts, or two hours."""
    plan = blocked((1, 2), (2, 3), blocks=3)
    whole = made(plan, "run-0")
    halves = [made(plan, f"run-of-{arm}", failing("b02", arm)) for arm in ("draft", "none")]
    with pytest.raises(ClaimError, match="no block holds"):
        value(RATIO, *halves)
    found = value(RATIO, *halves, whole)
    assert {(use.run, use.boot[:3]) for use in found.measured} == {("run-0", "b02")}
    assert found.blocks_told[0].startswith("block 2 alone")


def failing(block: str, arm: str) -> Callable[[Any], Any]:
    """An edit by which the boot of that block and arm fails before its windows."""

    def edit(event: Any) -> Any:
        boot = getattr(event, "boot", "")
        if not (boot.startswith(block) and boot.endswith(arm)):
            return event
        if isinstance(event, schema.BootEnded):
            return replace(event, outcome="failed", cause="out of memory")
        return event if isinstance(event, schema.BootStarted) else None

    return edit


def test_answers_are_compared_wherever_they_were_given(made: Made) -> None:
    """Which token is the likeliest does not turn on how fast a host is."""
    run = made(blocked((1, 2), (3, 4)))
    prompts = value("s.draft.c1.texts.prompts", run).value
    same, other = (value(f"s.draft-vs-none.c1.texts.{n}", run).value for n in ("same", "other"))
    assert same + other == prompts > 0


@pytest.mark.parametrize("name", ["dispersion", "latency", "goodput"])
def test_a_table_that_lists_arms_says_which_blocks_each_is_of(made: Made, name: str) -> None:
    apart = made(blocked((1, 2, 3), (2, 3, 4)))
    (note,) = {*notes(apart, name)} - {*notes(made(small_plan(), "run-2"), name)}
    assert "(draft: blocks 1 to 3; none: blocks 2 to 4)" in note
    assert "two arms are compared within the blocks that hold both" in note


def notes(run: StudyRun, name: str) -> tuple[str, ...]:
    tables = {"dispersion": dispersion_table, "latency": latency_table, "goodput": goodput_table}
    return tables[name](run.metrics).notes


def test_a_trace_says_which_blocks_counted(tmp_path: Path, made: Made) -> None:
    run = made(blocked((1, 2, 3), (2, 3, 4)))
    found = value(RATIO, run)
    evaluation = Evaluation({}, {run.run_id: run}, {RATIO: found})
    traced = trace(RATIO, evaluation, tmp_path, tmp_path, {})
    assert traced.blocks == ("blocks 2 and 3 alone, which hold all of these arms",)
    assert [one.block for one in traced.boots] == [2, 3, 2, 3]


@dataclass(frozen=True)
class Placed:
    run_id: str
    block: int


_MEASURED = st.lists(st.builds(Placed, st.sampled_from("ab"), st.integers(1, 6)), max_size=8)


@given(st.dictionaries(st.sampled_from(("x", "y", "z")), _MEASURED, min_size=1))
def test_a_block_is_common_if_and_only_if_each_arm_is_in_it(
    found: dict[str, list[Placed]],
) -> None:
    blocks = common_blocks(found)
    held = {(one.run_id, one.block) for measured in found.values() for one in measured}
    for block in held:
        in_each = all(
            any((one.run_id, one.block) == block for one in some) for some in found.values()
        )
        assert (block in blocks) == in_each
    assert blocks <= held
    for measured in found.values():
        assert {(one.run_id, one.block) for one in within(blocks, measured)} == blocks
    assert bool(abreast("w", found).told) == (set(blocks) != held)
