"""Runs against runs: each outcome by ratios made to give it; what is not alike is named instead."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from analysis.claiming.reading import StudyRun, read_study_run
from analysis.comparing.against_runs import Rule, compared_verdicts
from analysis.comparing.verdict import Verdict
from analysis.metrics import WindowMetrics
from records.load import Load
from records.plan import Plan, PlannedBoot
from records.run_directory import RunDirectory
from tests.comparable_runs import Made, l4_plan, made_run
from tests.sealed_run import Shape

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "records" / "data" / "20261130T115921Z-smoke-cpu-5d0eba"
GRAPH = "draft-bf16-graph"
THROUGHPUT = f"l4-confounds.{GRAPH}.c64.throughput"
RATE = Rule(only=(THROUGHPUT,))
ALL = Rule()
ARMS = (GRAPH, "draft-bf16-eager", "none-bf16-graph")
PLAN = l4_plan(4, ARMS)
Maker = Callable[..., StudyRun]


@dataclass(frozen=True)
class Jitter:
    """Window lengths that swing by this share from block to block, about a factor."""

    share: float
    factor: float = 1.0

    def __call__(self, boot: PlannedBoot) -> float:
        return 2 * self.factor * (1 + self.share * (-1) ** boot.block)


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    """A run of this name, plan and looks; made once for all tests that want it."""
    top = tmp_path_factory.mktemp("runs")
    made_already: dict[str, StudyRun] = {}

    def run(name: str, plan: Plan = PLAN, **looks: object) -> StudyRun:
        key = f"{name} {plan.digest} {sorted(looks.items())}"
        if key not in made_already:
            made = Made(**looks)  # type: ignore[arg-type]
            made_already[key] = made_run(top / str(len(made_already)) / name, plan, made)
        return made_already[key]

    return run


def by_id(
    mine: StudyRun | list[StudyRun], theirs: StudyRun | list[StudyRun], rule: Rule = ALL
) -> dict[str, Verdict]:
    sides = [side if isinstance(side, list) else [side] for side in (mine, theirs)]
    found = compared_verdicts(*sides, rule)
    names = [verdict.id for verdict in found]
    assert len(set(names)) == len(names)
    return {verdict.id: verdict for verdict in found}


@pytest.mark.parametrize(
    ("factor", "swing", "outcome"),
    [
        (1.00, 0.005, "reproduced"),
        (0.99, 0.005, "reproduced"),
        (1.20, 0.005, "contradicted"),
        (0.80, 0.005, "contradicted"),
        (1.00, 0.100, "inconclusive"),
        (1.05, 0.010, "inconclusive"),
    ],
)
def test_each_outcome_arises(make: Maker, factor: float, swing: float, outcome: str) -> None:
    mine = make("mine", lengths=Jitter(swing))
    theirs = make("theirs", lengths=Jitter(swing, factor))
    verdict = by_id(mine, theirs, RATE)[THROUGHPUT]
    assert verdict.outcome == outcome
    assert verdict.value == pytest.approx(factor, rel=0.001)
    assert (verdict.boots, verdict.hosts) == (4, 1)
    assert verdict.runs == ("mine", "theirs")


def test_the_interval_is_that_of_welch(make: Maker) -> None:
    mine = make("mine", lengths=Jitter(0.01))
    theirs = make("theirs", lengths=Jitter(0.03, 1.02))
    verdict = by_id(mine, theirs, RATE)[THROUGHPUT]
    logs = [
        np.log([m.output_tokens_per_s for m in run.metrics if m.arm == GRAPH])
        for run in (mine, theirs)
    ]
    want = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.90)
    assert verdict.interval is not None
    assert math.log(verdict.interval.low) == pytest.approx(want.low)
    assert math.log(verdict.interval.high) == pytest.approx(want.high)


def test_quantities_are_those_of_the_window(make: Maker) -> None:
    found = by_id(make("mine"), make("theirs"))
    of_graph = [id_.removeprefix(f"l4-confounds.{GRAPH}.c64.") for id_ in found if GRAPH in id_]
    assert of_graph == [
        "throughput",
        "acceptance",
        "step-gap.p50",
        "step-gap.p95",
        "tpot.n-1.p50",
        "tpot.n-k1.p50",
        "ntpot.p50",
        "ttft.sent.p50",
        "goodput.p95-step-gap.40ms",
        "goodput.tpot.n-1.40ms",
    ]
    assert "l4-confounds.none-bf16-graph.c64.acceptance" not in found


def test_acceptance_that_is_the_same_in_every_boot_is_reproduced(make: Maker) -> None:
    found = by_id(make("mine"), make("theirs"))
    verdict = found[f"l4-confounds.{GRAPH}.c64.acceptance"]
    assert (verdict.outcome, verdict.value, verdict.p) == ("reproduced", 1.0, 0.0)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"driver": "570.9"}, "other driver: 570.9 there, 580.1 here"),
        ({"gpu": "NVIDIA H200"}, "other accelerator: NVIDIA H200 there, NVIDIA L4 here"),
        ({"gpu": ""}, "other accelerator: unnamed CPU there"),
        ({"version": "0.30.0"}, "other engine: vllm 0.30.0 there, vllm 0.29.0 here"),
        ({"shape": Shape(synthetic=True)}, "other synthetic: True there"),
        ({"target": {GRAPH: ("FLASHINFER", "-")}}, "target.backend FLASHINFER there, FLASH_ATTN"),
    ],
)
def test_what_is_not_alike_is_not_compared(make: Maker, made: dict[str, object], said: str) -> None:
    verdict = by_id(make("mine"), make("theirs", **made))[THROUGHPUT]
    assert (verdict.outcome, verdict.p, verdict.interval) == ("not applicable", None, None)
    assert said in verdict.reason
    assert verdict.measured == "1.0000"


def _changed(change: str) -> Plan:
    plan = PLAN
    if change == "arm":
        arms = (replace(plan.arms[0], args=("--enforce-eager",)), *plan.arms[1:])
        return replace(plan, arms=arms)
    if change == "window":
        window = replace(plan.windows[0], load=Load("closed", 3, requests=4))
        return replace(plan, windows=(window,))
    if change == "warm-up":
        return replace(plan, warmup=replace(plan.warmup, requests=9))
    if change == "id":
        return replace(plan, id="another")
    return replace(plan, blocks=5, title="the same, longer", seed=7)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("arm", f"arm {GRAPH} is configured otherwise there"),
        ("window", "window c64 is another load there"),
        ("warm-up", "other plan: warmup differs"),
    ],
)
def test_another_plan_is_not_compared(make: Maker, change: str, said: str) -> None:
    found = by_id(make("mine"), make("theirs", _changed(change)))
    assert found[THROUGHPUT].outcome == "not applicable"
    assert said in found[THROUGHPUT].reason
    other = found["l4-confounds.draft-bf16-eager.c64.throughput"]
    assert (other.outcome == "not applicable") == (change != "arm")


def test_blocks_and_labels_of_a_plan_do_not_matter(make: Maker) -> None:
    found = by_id(make("mine"), make("theirs", _changed("labels")))
    assert found[THROUGHPUT].p is not None


def test_a_plan_that_the_other_side_lacks_is_told(make: Maker) -> None:
    (verdict,) = by_id(make("mine"), make("theirs", _changed("id"))).values()
    assert verdict.outcome == "not applicable"
    assert verdict.reason == "no record of plan l4-confounds on the other side"


def test_of_several_strata_only_the_one_alike_is_compared(make: Maker) -> None:
    theirs = [make("old", driver="570.9"), make("same", lengths=Jitter(0.001, 0.5))]
    verdict = by_id(make("mine", lengths=Jitter(0.001)), theirs, RATE)[THROUGHPUT]
    assert verdict.runs == ("mine", "same")
    assert verdict.outcome == "contradicted"


def test_boots_of_one_side_that_did_not_decide_alike_are_no_replicates(make: Maker) -> None:
    one = make("one")
    other = make("other", target={GRAPH: ("FLASHINFER", "-")})
    verdict = by_id(make("mine"), [one, other])[THROUGHPUT]
    assert "did not decide alike" in verdict.reason


def test_a_void_window_and_a_failed_boot_are_no_values(make: Maker) -> None:
    bad = {f"b01-{i}-{GRAPH}": "failed" for i in range(1, 7)}
    verdict = by_id(make("mine", outcomes=bad), make("theirs"))[THROUGHPUT]
    assert verdict.boots == 3


def test_hosts_are_repeated_not_their_boots(make: Maker) -> None:
    """Two hosts a side, far apart: over twelve boots it would pass, over hosts it says nothing."""

    def side(
        name: str, hosts: tuple[str, str], factors: tuple[float, float] = (1.0, 1.04)
    ) -> list[StudyRun]:
        return [
            make(f"{name}-{host}", host=host, lengths=Jitter(0.001, factor))
            for host, factor in zip(hosts, factors, strict=True)
        ]

    theirs = side("theirs", ("a", "b"), (1.001, 1.0415))
    same = by_id(side("mine", ("a", "b")), theirs, RATE)[THROUGHPUT]
    assert (same.outcome, same.hosts) == ("reproduced", 2)
    assert "over hosts" in same.test
    other = by_id(side("more", ("a", "b")), side("else", ("c", "d")), RATE)[THROUGHPUT]
    assert (other.outcome, other.hosts, other.needed_boots) == ("inconclusive", 4, None)
    assert "hosts a side would decide it" in other.reason


def test_one_host_a_side_says_that_it_may_be_the_hosts(make: Maker) -> None:
    mine, theirs = make("mine", lengths=Jitter(0.001)), make("theirs", host="host-2")
    verdict = by_id(mine, theirs, RATE)[THROUGHPUT]
    assert "may be that of the hosts" in verdict.reason


def test_the_clients_error_is_reckoned_with_at_its_worst(make: Maker, tmp_path: Path) -> None:
    gap = f"l4-confounds.{GRAPH}.c64.step-gap.p50"
    rule = Rule(only=(gap,))
    slower = Shape(scale_ppm=1_150_000)
    exact = by_id(make("mine", shape=slower), make("theirs"), rule)[gap]
    assert exact.outcome == "contradicted"
    same = by_id(make("one"), make("two"), rule)[gap]
    assert same.outcome == "reproduced"

    def coarse(run: StudyRun) -> StudyRun:
        found = tuple(replace(c, error_p99_ns=2_000_000) for c in run.calibrations)
        return replace(run, calibrations=found)

    mine, theirs = coarse(make("mine", shape=slower)), coarse(make("theirs"))
    bent = by_id(mine, theirs, rule)[gap]
    assert bent.outcome == "inconclusive"
    assert "the client's own error" in bent.reason
    one, two = coarse(make("one")), coarse(make("two"))
    assert by_id(one, two, rule)[gap].outcome == "inconclusive"
    blind = replace(theirs, calibrations=())
    assert "no calibration" in by_id(replace(mine, calibrations=()), blind, rule)[gap].reason


def test_rates_of_nothing_have_no_ratio(make: Maker) -> None:
    goodput = f"l4-confounds.{GRAPH}.c64.goodput.p95-step-gap.20ms"
    rule = Rule(threshold_ms=20, only=(goodput,))
    slow, slower = Shape(scale_ppm=3_000_000), Shape(scale_ppm=4_000_000)
    none = by_id(make("a", shape=slow), make("b", shape=slower), rule)[goodput]
    assert (none.outcome, none.reason) == ("reproduced", "0 in every boot of both sides")
    fast = Shape(scale_ppm=500_000)
    apart = by_id(make("c", shape=slow), make("d", shape=fast), rule)[goodput]
    assert apart.outcome == "contradicted"

    def near(window: WindowMetrics) -> WindowMetrics:
        found = tuple(replace(one, possibly=one.met + 1) for one in window.goodput)
        return replace(window, goodput=found)

    doubtful = make("e", shape=slow)
    doubtful = replace(doubtful, metrics=tuple(map(near, doubtful.metrics)))
    in_doubt = by_id(doubtful, make("f", shape=fast), rule)[goodput]
    assert in_doubt.outcome == "inconclusive"
    assert "within the client's error" in in_doubt.reason


@pytest.mark.parametrize(("blocks", "outcome"), [(1, False), (2, False), (3, True)])
def test_boots_that_are_all_alike_decide_from_three_a_side_on(
    tmp_path: Path, blocks: int, outcome: bool
) -> None:
    """Two equal values do not show that there is no spread, however equal they are."""
    goodput = f"l4-confounds.{GRAPH}.c64.goodput.p95-step-gap.20ms"
    rule = Rule(threshold_ms=20, only=(goodput, THROUGHPUT))
    plan = l4_plan(blocks, (GRAPH,))
    sides = [
        [made_run(tmp_path / name, plan, Made(shape=Shape(scale_ppm=ppm)))]
        for name, ppm in (("a", 3_000_000), ("b", 4_000_000), ("c", 500_000))
    ]
    sides = [[replace(run, metrics=_all_alike(run)) for run in side] for side in sides]
    for other, word in ((sides[1], "reproduced"), (sides[2], "contradicted")):
        found = {v.id: v for v in compared_verdicts(sides[0], other, rule)}
        assert found[goodput].outcome == (word if outcome else "inconclusive")
    same = [replace(run, started=replace(run.started, run_id="same")) for run in sides[0]]
    same = [
        replace(
            run,
            metrics=tuple(replace(m, run_id="same") for m in run.metrics),
            boots=tuple(replace(b, run="same") for b in run.boots),
        )
        for run in same
    ]
    found = {v.id: v for v in compared_verdicts(sides[0], same, rule)}
    assert found[THROUGHPUT].outcome == ("reproduced" if outcome else "inconclusive")


def _all_alike(run: StudyRun) -> tuple[WindowMetrics, ...]:
    rate = run.metrics[0].output_tokens_per_s
    return tuple(replace(m, output_tokens_per_s=rate) for m in run.metrics)


def test_a_margin_of_a_quantity_is_its_own(make: Maker) -> None:
    mine, theirs = make("mine", lengths=Jitter(0.001)), make("theirs", lengths=Jitter(0.001, 1.08))
    assert by_id(mine, theirs, RATE)[THROUGHPUT].outcome == "contradicted"
    wide = replace(RATE, margins={"throughput": 0.2})
    assert by_id(mine, theirs, wide)[THROUGHPUT].outcome == "reproduced"


def test_the_more_is_asked_the_more_boots_it_takes(make: Maker) -> None:
    mine, theirs = make("mine", lengths=Jitter(0.03)), make("theirs", lengths=Jitter(0.03))
    alone, among = by_id(mine, theirs, RATE)[THROUGHPUT], by_id(mine, theirs)[THROUGHPUT]
    assert alone.p == among.p
    assert among.p_holm is not None
    assert alone.p_holm is not None
    assert among.p_holm > alone.p_holm
    assert alone.needed_boots is not None
    assert among.needed_boots is not None
    assert among.needed_boots > alone.needed_boots > 4


def test_the_shipped_run_against_a_copy_of_itself_under_another_name() -> None:
    """A real run: two boots a side decide little, and nothing where they show no spread."""
    run = read_study_run(RunDirectory(SHIPPED))
    copy = replace(run, started=replace(run.started, run_id="copy"))
    copy = replace(
        copy,
        metrics=tuple(replace(m, run_id="copy") for m in run.metrics),
        boots=tuple(replace(b, run="copy") for b in run.boots),
    )
    found = by_id(run, copy)
    acceptance = found["smoke-cpu.draft.c8.acceptance"]
    assert (acceptance.outcome, acceptance.boots) == ("inconclusive", 2)
    assert acceptance.reason == "boots without a spread: 3 boots a side are the least to decide"
    assert not [v for v in found.values() if v.outcome in ("contradicted", "not applicable")]


def test_a_run_that_changed_on_the_way_is_not_compared(make: Maker) -> None:
    mine, theirs = make("mine"), make("theirs")
    unbound = replace(theirs, engines=theirs.engines[:1])
    for verdict in (
        by_id(mine, unbound, RATE)[THROUGHPUT],
        by_id(replace(mine, engines=mine.engines[:1]), theirs, RATE)[THROUGHPUT],
    ):
        assert (verdict.outcome, verdict.p) == ("not applicable", None)
        assert "its engine was not bound both before and after" in verdict.reason
