"""The inversion: no request of the fastest arm meets the objective, some of a slower one do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.claiming.reading import StudyRun
from analysis.comparing.against_published import published_verdicts
from analysis.comparing.verdict import Verdict
from analysis.metrics import WindowMetrics
from analysis.published import Published, load_published
from tests.comparable_runs import Made, l4_plan, made_run

ROOT = Path(__file__).parents[2]
FAST, EAGER, NGRAM, NONE = (
    "draft-bf16-graph",
    "draft-bf16-eager",
    "ngram-bf16-graph",
    "none-bf16-graph",
)
RATES = {FAST: 400.0, EAGER: 300.0, NGRAM: 200.0, NONE: 100.0}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> StudyRun:
    return made_run(tmp_path_factory.mktemp("runs") / "run-1", l4_plan(3, tuple(RATES)), Made())


@pytest.fixture(scope="module")
def claim() -> dict[str, Published]:
    return {"goodput.inversion": load_published(ROOT)["goodput.inversion"]}


def measured(
    base: StudyRun,
    met: dict[str, tuple[int, int, int]],
    rates: dict[str, float] = RATES,
    near: int = 0,
) -> StudyRun:
    """The run with these requests meeting the objective by block, at 75 ms alone; so many more may.

    `near`: requests of each boot that the client's error leaves in doubt.
    """

    def one(window: WindowMetrics) -> WindowMetrics:
        count = met.get(window.arm, (0, 0, 0))[window.block - 1]
        goodput = tuple(
            replace(g, met=count, surely=count, possibly=count + near, per_second=float(count))
            if g.quantity == "p95-step-gap"
            else g
            for g in window.goodput
        )
        rate = rates[window.arm] * (1 + 0.001 * window.block)
        return replace(window, output_tokens_per_s=rate, goodput=goodput)

    return replace(base, metrics=tuple(map(one, base.metrics)))


def verdict(run: StudyRun, claim: dict[str, Published]) -> Verdict:
    (found,) = published_verdicts([run], claim)
    return found


SOME, NOTHING = (2, 1, 2), (0, 0, 0)


@pytest.mark.parametrize(
    ("met", "outcome", "said"),
    [
        ({NONE: SOME}, "reproduced", "meets it nowhere from 20 to 75 ms; slower arms do"),
        ({NONE: (0, 0, 1)}, "reproduced", "slower arms do"),
        ({FAST: SOME, NONE: SOME}, "contradicted", "meet the objective in every boot"),
        ({FAST: SOME}, "contradicted", "meet the objective in every boot"),
        ({FAST: (0, 1, 0), NONE: SOME}, "inconclusive", "others none"),
        ({}, "inconclusive", "no ranking is inverted"),
    ],
)
def test_each_outcome_arises(
    base: StudyRun,
    claim: dict[str, Published],
    met: dict[str, tuple[int, int, int]],
    outcome: str,
    said: str,
) -> None:
    found = verdict(measured(base, met), claim)
    assert found.outcome == outcome
    assert said in found.reason
    assert f"{FAST} is the fastest" in found.reason
    assert found.p is None
    assert found.boots == 3


def test_arms_that_might_be_the_fastest_must_come_out_alike(
    base: StudyRun, claim: dict[str, Published]
) -> None:
    tied = {**RATES, EAGER: 400.1}
    both_none = verdict(measured(base, {NONE: SOME}, tied), claim)
    assert both_none.outcome == "reproduced"
    assert f"any of {FAST}, {EAGER} may be" in both_none.reason
    apart = verdict(measured(base, {EAGER: SOME, NONE: SOME}, tied), claim)
    assert apart.outcome == "inconclusive"


def test_a_request_within_the_clients_error_decides_nothing(
    base: StudyRun, claim: dict[str, Published]
) -> None:
    """Where nothing else meets the objective; beside a request that surely does it changes none."""
    found = verdict(measured(base, {NONE: SOME}, near=2), claim)
    assert found.outcome == "inconclusive"
    assert "no request but 6 within the client's error may meet it" in found.reason
    some = verdict(measured(base, {FAST: SOME, NONE: SOME}, near=2), claim)
    assert some.outcome == "contradicted"


def test_one_boot_repeats_nothing(base: StudyRun, claim: dict[str, Published]) -> None:
    run = measured(base, {NONE: SOME})
    one = replace(run, metrics=tuple(m for m in run.metrics if m.block == 1))
    assert verdict(one, claim).outcome == "inconclusive"
    assert "repeats nothing" in verdict(one, claim).reason


def test_thresholds_that_were_not_measured_decide_nothing(
    base: StudyRun, claim: dict[str, Published]
) -> None:
    (one,) = claim.values()
    wider = {one.id: replace(one, thresholds_ms=(20, 100))}
    found = verdict(measured(base, {NONE: SOME}), wider)
    assert found.outcome == "inconclusive"
    assert "no thresholds of 20 and 100 ms" in found.reason


def test_a_block_that_lacks_an_arm_counts_for_none(
    base: StudyRun, claim: dict[str, Published]
) -> None:
    """The fastest arm meets the objective in block 3 alone, where another was not measured."""
    run = measured(base, {FAST: (0, 0, 2), NONE: SOME})
    assert verdict(run, claim).outcome == "inconclusive"
    less = tuple(m for m in run.metrics if (m.arm, m.block) != (EAGER, 3))
    found = verdict(replace(run, metrics=less), claim)
    assert (found.outcome, found.boots) == ("reproduced", 2)
    assert "of blocks 1 and 2 alone, which hold all of these arms" in found.reason


def test_without_an_arm_it_is_not_decided(base: StudyRun, claim: dict[str, Published]) -> None:
    run = measured(base, {NONE: SOME})
    less = replace(run, metrics=tuple(m for m in run.metrics if m.arm != NONE))
    assert verdict(less, claim).outcome == "inconclusive"
    assert "no usable window" in verdict(less, claim).reason
