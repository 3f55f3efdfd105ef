"""The rule of decision: p and interval agree, errors keep their level, n keeps its power."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analysis.comparing.decision_rule import (
    POWER,
    Spread,
    coefficient,
    log_ratio,
    spread_within,
)
from analysis.comparing.family import Pending, settle
from analysis.comparing.sides import log_difference
from analysis.comparing.verdict import Interval, Verdict
from analysis.statistics.equivalence import tost_ratio

MARGIN = (0.95, 1.05)
CV_MARGIN = (0.0696, 0.2088)
RUNS = 2000
# Three standard errors of a share of 0.05 among RUNS.
SLIP = 3 * math.sqrt(0.05 * 0.95 / RUNS)


def decide(first: np.ndarray, second: np.ndarray, slack: float = 0.0):
    found = log_difference({"h": list(first)}, {"h": list(second)})
    assert found is not None
    return log_ratio(found.difference, found.error, found.free, MARGIN, slack)


@given(st.floats(-0.2, 0.2), st.floats(1e-4, 0.2), st.integers(1, 40), st.floats(0, 0.1))
def test_the_interval_and_the_p_values_say_the_same(
    difference: float, error: float, free: int, slack: float
) -> None:
    found = log_ratio(difference, error, free, MARGIN)
    low, high = found.interval.low, found.interval.high
    assume(all(abs(end - edge) > 1e-9 for end in (low, high) for edge in MARGIN))
    assert (found.p_within < 0.05) == (MARGIN[0] < low and high < MARGIN[1])
    assert (found.p_outside < 0.05) == (low > MARGIN[1] or high < MARGIN[0])
    assert found.p_within + found.p_outside >= 1 - 1e-9
    unsure = log_ratio(difference, error, free, MARGIN, slack)
    assert unsure.p_within >= found.p_within
    assert unsure.p_outside >= found.p_outside


@given(st.floats(0.001, 0.3), st.integers(2, 60))
def test_of_a_spread_too(cv: float, free: int) -> None:
    found = coefficient(Spread(cv, free, free + 1, 1), CV_MARGIN)
    low, high = found.interval.low, found.interval.high
    assume(all(abs(end - edge) > 1e-9 for end in (low, high) for edge in CV_MARGIN))
    assert (found.p_within < 0.05) == (CV_MARGIN[0] < low and high < CV_MARGIN[1])
    assert (found.p_outside < 0.05) == (low > CV_MARGIN[1] or high < CV_MARGIN[0])


def test_within_is_the_test_of_the_statistics_module() -> None:
    rng = np.random.default_rng(1)
    for n_one, n_two in ((3, 3), (5, 9), (12, 12)):
        one, two = rng.normal(1.0, 0.02, n_one), rng.normal(1.0, 0.05, n_two)
        want = tost_ratio(one, two, 0.05)
        found = decide(one, two)
        assert found.p_within == pytest.approx(want.p)
        assert (found.interval.low, found.interval.high) == pytest.approx((want.low, want.high))
        assert (found.p_outside < 0.05) == want.different


@pytest.mark.parametrize("edge", MARGIN)
def test_a_ratio_at_the_margin_is_rarely_decided_either_way(edge: float) -> None:
    rng = np.random.default_rng(2)
    within = outside = 0
    for _ in range(RUNS):
        one = np.exp(rng.normal(math.log(edge), 0.01, 6))
        found = decide(one, np.exp(rng.normal(0.0, 0.01, 6)))
        within += found.p_within < 0.05
        outside += found.p_outside < 0.05
    assert within / RUNS <= 0.05 + SLIP
    assert outside / RUNS <= 0.05 + SLIP


@pytest.mark.parametrize("edge", CV_MARGIN)
def test_a_spread_at_the_margin_is_rarely_decided_either_way(edge: float) -> None:
    rng = np.random.default_rng(3)
    within = outside = 0
    for _ in range(RUNS):
        spread = spread_within({"h": list(rng.normal(1.0, edge, 40))})
        assert spread is not None
        found = coefficient(spread, CV_MARGIN)
        within += found.p_within < 0.05
        outside += found.p_outside < 0.05
    assert within / RUNS <= 0.05 + SLIP
    assert outside / RUNS <= 0.05 + SLIP


@pytest.mark.parametrize(("ratio", "sd"), [(1.0, 0.04), (1.12, 0.06), (0.97, 0.02)])
def test_as_many_boots_as_named_decide_as_often_as_said(ratio: float, sd: float) -> None:
    rng = np.random.default_rng(4)
    middle = math.log(ratio)
    assumed = log_ratio(middle, sd * math.sqrt(2 / 4), 6, MARGIN)
    n = assumed.needed(0.05)
    assert n is not None
    decided = 0
    for _ in range(RUNS):
        one, two = rng.normal(middle, sd, n), rng.normal(0.0, sd, n)
        decided += decide(np.exp(one), np.exp(two)).p < 0.05
    assert POWER - 0.05 < decided / RUNS < POWER + 0.09
    assert assumed.needed(0.01) > n  # type: ignore[operator]


@pytest.mark.parametrize("cv", [0.13, 0.32, 0.04])
def test_of_a_spread_as_well(cv: float) -> None:
    rng = np.random.default_rng(5)
    n = coefficient(Spread(cv, 5, 6, 1), CV_MARGIN).needed(0.05)
    assert n is not None
    decided = 0
    for _ in range(RUNS):
        spread = spread_within({"h": list(rng.normal(1.0, cv, n))})
        assert spread is not None
        decided += coefficient(spread, CV_MARGIN).p < 0.05
    # A CV above a third is at the edge of what the interval is made for.
    assert POWER - 0.06 < decided / RUNS < POWER + 0.12


def test_near_the_margins_end_no_number_of_boots_is_named() -> None:
    assert log_ratio(math.log(1.05), 0.01, 6, MARGIN).needed(0.05) is None
    assert log_ratio(math.log(1.0501), 0.05, 6, MARGIN).needed(0.05) is None
    assert log_ratio(0.0, 0.01, 6, MARGIN, slack=0.06).needed(0.05) is None
    assert coefficient(Spread(0.2087, 11, 12, 1), CV_MARGIN).needed(0.05) is None


def test_boots_that_do_not_differ_decide_at_once() -> None:
    same = decide(np.array([2.0, 2.0]), np.array([2.0, 2.0]))
    assert (same.p_within, same.p_outside) == (0.0, 1.0)
    apart = decide(np.array([2.0, 2.0]), np.array([1.0, 1.0]))
    assert (apart.p_within, apart.p_outside) == (1.0, 0.0)
    none = coefficient(Spread(0.0, 11, 12, 1), CV_MARGIN)
    assert (none.p_within, none.p_outside) == (1.0, 0.0)
    assert (none.interval.low, none.interval.high) == (0.0, 0.0)


@settings(max_examples=60)
@given(st.lists(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=6), min_size=1, max_size=4))
def test_what_hosts_differ_by_is_no_spread(hosts: list[list[float]]) -> None:
    found = spread_within({str(i): values for i, values in enumerate(hosts)})
    faster = {str(i): [v * (i + 1) for v in values] for i, values in enumerate(hosts)}
    scaled = spread_within(faster)
    assert found is not None
    assert scaled is not None
    assert scaled.cv == pytest.approx(found.cv, abs=1e-12)
    assert found.free == sum(map(len, hosts)) - len(hosts)


def pending(difference: float, error: float) -> Pending:
    verdict = Verdict("v", "", "", "", "inconclusive", "", "t", bounds=Interval(*MARGIN, 1.0))
    return Pending(verdict, log_ratio(difference, error, 10, MARGIN))


def test_a_family_takes_back_what_only_one_alone_would_decide() -> None:
    border, clear = pending(0.0, 0.026), pending(0.0, 0.001)
    (alone,) = settle([border])
    assert alone.outcome == "reproduced"
    among = settle([border, *[pending(0.05, 0.03)] * 4])
    assert among[0].outcome == "inconclusive"
    assert "not as one of 5 tests (Holm)" in among[0].reason
    assert among[0].needed_boots is not None
    assert settle([clear, *[border] * 4])[0].outcome == "reproduced"


def test_boots_that_did_not_decide_are_not_said_to_be_enough() -> None:
    """What decides with some power may fail once; then more are needed than there are."""
    verdict = Verdict(
        "v", "", "", "", "inconclusive", "", "t", boots=2, bounds=Interval(*MARGIN, 1.0)
    )
    weak = replace(log_ratio(0.0, 0.026, 2, MARGIN), needed=lambda _level: 2)
    (found,) = settle([Pending(verdict, weak)])
    assert found.outcome == "inconclusive"
    assert found.needed_boots == 3
    assert "about 3 boots" in found.reason


def test_what_has_no_test_is_no_part_of_the_family() -> None:
    kind = Pending(Verdict("k", "", "", "", "contradicted", "because", "kind"))
    found = settle([pending(0.0, 0.026), *[kind] * 9])
    assert found[0].outcome == "reproduced"
    assert {v.outcome for v in found[1:]} == {"contradicted"}
    assert settle([kind]) == (kind.verdict,)
