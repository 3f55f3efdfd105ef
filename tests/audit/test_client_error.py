"""What is claimed of rates, orders and objectives where the client's stamps err by too much.

The records are made up: two arms, of which `draft` is the faster one, since its responses end
sooner; the p95 step gap of request i is (20 + i) ms, a hundredth more in block 1, two in block 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

import pytest

from analysis.claiming import gpu_quantities as g
from analysis.claiming import quantities as q
from analysis.claiming import rankings as r
from analysis.claiming.claim import Claim, Value, evaluate
from analysis.claiming.documents import Citation
from analysis.claiming.reading import Reading, StudyRun, read_study_run
from audit.checks import basis
from records import schema
from records.plan import Plan
from tests.sealed_run import MS, Shape, make_run, small_plan

ARMS = ("draft", "none")
STAMPS_NS = 20_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., StudyRun]:
    """run(error_ns): a run whose stamps err by so much; None: nothing was calibrated.

    run(error_ns, tail_ns): the client's clock ran on for so long after the end of each window.
    """
    made: dict[tuple[int | None, int], StudyRun] = {}

    def make(error_ns: int | None = STAMPS_NS, tail_ns: int = MS) -> StudyRun:
        if (error_ns, tail_ns) not in made:
            path = tmp_path_factory.mktemp("data") / "run-1"
            edit = partial(edited, error_ns, tail_ns)
            made[error_ns, tail_ns] = read_study_run(make_run(path, plan(), Shape(edit=edit)))
        return made[error_ns, tail_ns]

    return make


def plan() -> Plan:
    """Thresholds of the objective: within, between and beyond the gaps."""
    return replace(small_plan(), thresholds_ms=(20, 21, 22, 50))


def edited(error_ns: int | None, tail_ns: int, event: Any) -> Any:
    """Calibrated so, with windows that end so much after their last response."""
    if isinstance(event, schema.Calibrated):
        return replace(event, error_p99_ns=error_ns) if error_ns is not None else None
    if isinstance(event, schema.WindowEnded):
        wall_ns = event.report.wall_ns - MS + tail_ns
        return replace(event, report=replace(event.report, wall_ns=wall_ns))
    return event


def valued(function: Any, run: StudyRun) -> Value:
    """What a claim made of this function comes to over one run."""
    return evaluate(Claim("s.x", "x", "s", function, "", 3), Reading("s", (run,)))


def codes(function: Any, run: StudyRun) -> set[str]:
    """What the audit says of it."""
    at = Citation("README.md", 1, "claim", "s.x", "")
    return {finding.code for finding in basis.judge(valued(function, run), (run,), at)}


def parted_ns(run: StudyRun) -> float:
    """By how much the windows c1 of `none` are longer than those of `draft`; tokens are as many."""
    lengths = {
        arm: [w.wall_ns for w in run.metrics if (w.arm, w.window) == (arm, "c1")] for arm in ARMS
    }
    return fmean(lengths["none"]) - fmean(lengths["draft"])


FASTEST = partial(r.fastest, ARMS, "c1")
RATIO = partial(q.ratio, q.throughput, "draft", "none", "speculation", "c1")
UNCONTROLLED = partial(g.uncontrolled_ratio, q.throughput, "draft", "none", "c1")
LEFT_OVER = partial(g.left_over_ratio, q.throughput, "draft", "none", "c1")
SPREAD = partial(q.cv_percent, q.throughput, "none", "c1")
LOST = partial(r.thresholds_lost, "p95-step-gap", (22,), ARMS, "c1")
MOST = partial(r.most_goodput, "p95-step-gap", 22, ARMS, "c1")


def meeting(threshold_ms: int, quantity: str = "p95-step-gap", arm: str = "none") -> Any:
    """The share of an arm's requests that meet an objective."""
    return partial(q.compliant_percent, quantity, threshold_ms, arm, "c1")


def of_fastest(threshold_ms: int) -> Any:
    """The goodput of the fastest arm, by gaps."""
    return partial(r.goodput_of_fastest, "p95-step-gap", (threshold_ms,), ARMS, "c1")


@pytest.mark.parametrize("function", [FASTEST, RATIO, UNCONTROLLED], ids=lambda f: f.func.__name__)
@pytest.mark.parametrize("past", ["stamps", "clock"])
@pytest.mark.parametrize("code", [set(), {"BASIS05"}], ids=["above", "below"])
def test_a_rate_errs_by_what_the_length_of_its_window_does(run, function, past, code):
    """By the stamps' error as by the time that the client's clock ran on for: half of what parts
    the windows in each of them.
    """
    late_ns = int(parted_ns(run()) / 2 * (1.02 if code else 0.98)) - (0 if code else MS)
    spoilt = run(late_ns) if past == "stamps" else run(STAMPS_NS, late_ns)
    assert codes(function, run()) == set()
    assert codes(function, spoilt) == code


def test_what_parts_leave_over_need_not_be_told_from_nothing(run):
    assert codes(LEFT_OVER, run(200 * MS)) == set()
    assert codes(UNCONTROLLED, run(200 * MS)) == {"BASIS05"}


def test_a_spread_is_told_from_boots_that_are_all_alike(run):
    """Of two boots whose lengths part by a little: half of that in each of them undoes it."""
    lengths = [w.wall_ns for w in run().metrics if (w.arm, w.window) == ("none", "c1")]
    half_ns = (max(lengths) - min(lengths)) // 2
    assert codes(SPREAD, run(half_ns * 9 // 10, 0)) == set()
    assert codes(SPREAD, run(half_ns * 11 // 10, 0)) == {"BASIS05"}
    ends = [partial(end, q.throughput, "none", "c1") for end in (q.mean, q.median)]
    assert [codes(end, run(half_ns * 11 // 10, 0)) for end in ends] == [set(), set()]


def test_a_ratio_of_spreads_is_one_of_spreads_that_the_client_did_not_make(run):
    ratio = partial(g.spread_ratio, q.throughput, "draft", "none", "c1")
    assert codes(ratio, run(0, 0)) == set()
    assert codes(ratio, run(20 * MS)) == {"BASIS05"}


@pytest.mark.parametrize("function", [FASTEST, RATIO, SPREAD, LOST, MOST, of_fastest(50)])
def test_without_a_calibration_no_arm_is_ahead(run, function):
    assert codes(function, run(None)) == {"BASIS05"}


def test_whoever_is_first_is_held_against_every_other_arm(run):
    """Arm `none` again, under two names: the second's window is read off a clock that ran on."""
    base = run()

    def third(window: Any) -> Any:
        late = replace(window, arm="third", output_tokens_per_s=window.output_tokens_per_s * 0.99)
        return replace(late, length_error_ns=window.wall_ns / 4)

    others = tuple(third(w) for w in base.metrics if w.arm == "none")
    value = valued(
        partial(r.fastest, (*ARMS, "third"), "c1"), replace(base, metrics=(*base.metrics, *others))
    )
    assert [(lead.first, lead.second) for lead in value.leads] == [
        ("draft", "none"),
        ("draft", "third"),
    ]
    near, far = (
        sum(lead.errors or ()) / abs(lead.values[0] - lead.values[1]) for lead in value.leads
    )
    assert near < 1 < far


# The nearest of the requests lies 0.18 ms from 22 ms, 0.2 from 20 ms; a time per token of 15 gaps
# is as much a token, and so stands against fifteen times the error.
@pytest.mark.parametrize(
    ("function", "said", "stands_ns", "falls_ns"),
    [
        (meeting(20), 0.0, 190_000, 210_000),
        (meeting(20, "tpot.n-1"), 0.0, 2_900_000, 3_100_000),
        (meeting(20, "tpot.n-k1", "draft"), None, 0, None),
        (meeting(50), 100.0, 24_000_000, 25_000_000),
        (of_fastest(20), 0.0, 190_000, 210_000),
        (of_fastest(21), None, 790_000, 810_000),
        (LOST, 0, 150_000, 250_000),
        (MOST, "draft", 150_000, 250_000),
        (partial(r.most_goodput, "p95-step-gap", 20, ARMS, "c1"), "none", 190_000, 210_000),
    ],
    ids=lambda v: v.func.__name__ if isinstance(v, partial) else "",
)
def test_no_claim_turns_on_requests_nearer_than_the_clients_error(
    run, function, said, stands_ns, falls_ns
):
    if said is not None:
        assert valued(function, run()).value == said
    assert codes(function, run(stands_ns)) == set()
    if falls_ns is not None:
        assert codes(function, run(falls_ns)) == {"BASIS05"}


def test_some_of_the_requests_are_no_word_that_one_of_them_changes(run):
    share = valued(meeting(22), run()).value
    assert 0 < share < 100
    assert codes(meeting(22), run(250_000)) == set()


def test_a_threshold_is_lost_where_one_arm_surely_has_more(run):
    """The faster arm meets nothing, the other one half: that stands until the half is in doubt."""
    base = run()

    def parted(window: Any) -> Any:
        met = 3 if window.arm == "none" else 0
        goodput = tuple(
            replace(one, met=met, surely=met, possibly=met, per_second=met / window.wall_ns * 1e9)
            for one in window.goodput
        )
        return replace(window, goodput=goodput)

    def doubted(window: Any) -> Any:
        goodput = tuple(replace(one, surely=0) for one in window.goodput)
        return replace(window, goodput=goodput)

    sure = replace(base, metrics=tuple(map(parted, base.metrics)))
    assert valued(LOST, sure).value == 1
    assert codes(LOST, sure) == set()
    assert codes(MOST, sure) == set()
    unsure = replace(sure, metrics=tuple(map(doubted, sure.metrics)))
    assert valued(LOST, unsure).value == 1
    assert codes(LOST, unsure) == {"BASIS05"}
    assert codes(MOST, unsure) == {"BASIS05"}
