"""What a design can tell: against PowerTOST's printed figures, scipy and simulation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.statistics import (
    brown_forsythe_power,
    cv_interval,
    f_test_power,
    tost_blocks,
    tost_power,
)
from analysis.statistics.planning import (
    MOST_BOOTS,
    Design,
    cv_factors,
    detectable_ratio,
    detectable_spread,
    detectable_spread_anyhow,
    detects_ratio,
    detects_spread,
    detects_spread_anyhow,
    fewest_boots,
    fewest_hosts,
    host_sd_factors,
    meets_margin,
    ratio_error,
    repeats_cv,
    smallest_margin,
)
from analysis.statistics.power import (
    cv_margin_power,
    difference_power,
    equivalence_power,
    interval_inside_power,
)
from records.errors import FormatError

SEED = 20261130
TWELVE = Design(12)


def log_sd(cv: float) -> float:
    return math.sqrt(math.log1p(cv**2))


@pytest.mark.parametrize(
    ("cv", "one", "two", "true_ratio", "power"),
    [(0.35, 52, 49, 0.95, 0.8011186), (0.36, 75, 70, 0.93, 0.8256362)],
)
def test_power_of_tost_as_powertost_prints_it(
    cv: float, one: int, two: int, true_ratio: float, power: float
) -> None:
    # README of the R package PowerTOST: power.TOST(CV, theta0, n, design = "parallel").
    found = interval_inside_power(
        log_sd(cv) * math.sqrt(1 / one + 1 / two),
        one + two - 2,
        (math.log(0.80 / true_ratio), math.log(1.25 / true_ratio)),
        0.05,
    )
    assert found == pytest.approx(power, abs=5e-8)


def test_paired_power_as_powertost_prints_it() -> None:
    # The same: sampleN.TOST(CV = 0.20), a crossover of 20 with 18 degrees of freedom: 0.834680.
    bounds = (math.log(0.80 / 0.95), math.log(1.25 / 0.95))
    found = interval_inside_power(log_sd(0.20) * math.sqrt(2 / 20), 18, bounds, 0.05)
    assert found == pytest.approx(0.834680, abs=5e-7)


def test_exact_power_is_the_simulated_one() -> None:
    exact = equivalence_power(log_sd(0.02) * math.sqrt(2 / 5), 8, 0.05)
    simulated = tost_power(5, 0.02, 0.05, seed=SEED, variances="pooled")
    assert exact == pytest.approx(simulated.power, abs=4 * simulated.standard_error)
    at_edge = equivalence_power(0.002, 11, 0.05, true_ratio=1.05)
    assert at_edge == pytest.approx(0.05, abs=1e-6)
    assert equivalence_power(1.0, 11, 0.05) == 0.0
    for margin in (0.0, 1.0):
        with pytest.raises(FormatError):
            equivalence_power(0.1, 11, margin)


@pytest.mark.parametrize("free", [1, 2, 11, 200])
@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
def test_power_of_the_t_test_is_the_noncentral_t(free: int, shift: float) -> None:
    quantile = float(stats.t.isf(0.025, free))
    wanted = stats.nct.sf(quantile, free, shift) + stats.nct.cdf(-quantile, free, shift)
    assert difference_power(0.1, free, 0.1 * shift) == pytest.approx(float(wanted), abs=1e-6)


def test_detectable_ratio_is_found_by_the_test_as_often_as_said() -> None:
    rng = np.random.default_rng(SEED)
    design = replace(TWELVE, correlation=0.5)
    ratio = detectable_ratio(design, 0.1392, 0.0267)
    one, two = log_sd(0.1392), log_sd(0.0267)
    covariance = [[one**2, 0.5 * one * two], [0.5 * one * two, two**2]]
    logs = rng.multivariate_normal([math.log(ratio), 0.0], covariance, (10_000, 12))
    p = stats.ttest_1samp(logs[..., 0] - logs[..., 1], 0.0, axis=1).pvalue
    assert np.mean(p < 0.05) == pytest.approx(0.80, abs=0.015)


def test_smallest_margin_is_met_as_often_as_said() -> None:
    rng = np.random.default_rng(SEED)
    margin = smallest_margin(TWELVE, 0.05, 0.05)
    logs = rng.normal(0, log_sd(0.05), (1500, 2, 12))
    met = [tost_blocks(*np.exp(pair), margin).equivalent for pair in logs]
    assert np.mean(met) == pytest.approx(0.80, abs=0.03)
    assert smallest_margin(Design(2), 0.5, 0.5) == math.inf


def test_a_ratio_that_differs_between_hosts_is_found_as_often_as_said() -> None:
    rng = np.random.default_rng(SEED)
    design = Design(6, hosts=5, host_cv=0.02)
    error, free = ratio_error(design, 0.03, 0.03)
    assert free == 4
    runs = 10_000
    of_host = rng.normal(0, log_sd(0.02), (runs, 5))
    boots = rng.normal(0, log_sd(0.03) * math.sqrt(2), (runs, 5, 6))
    means = of_host + boots.mean(axis=-1)
    assert means.mean(axis=-1).std() == pytest.approx(error, rel=0.03)
    shifted = means + math.log(detectable_ratio(design, 0.03, 0.03))
    found = stats.ttest_1samp(shifted, 0.0, axis=1).pvalue < 0.05
    assert np.mean(found) == pytest.approx(0.80, abs=0.015)
    with pytest.raises(FormatError):
        ratio_error(replace(design, hosts=1), 0.03, 0.03)


def test_blocks_that_gain_save_boots() -> None:
    def boots(correlation: float) -> int | None:
        design = replace(TWELVE, correlation=correlation)
        return fewest_boots(design, detects_ratio(0.05, 0.05, 0.05))

    plain, blocked = boots(0.0), boots(0.8)
    assert plain is not None
    assert blocked is not None
    assert blocked < plain / 2


def test_interval_of_a_cv_is_that_of_such_boots() -> None:
    base = np.arange(12.0) - 5.5
    boots = 1 + base / base.std(ddof=1) * 0.1392
    found = cv_interval(boots)
    assert cv_factors(TWELVE, 0.1392) == pytest.approx((found.low, found.high))
    # Three hosts know the spread within them from three times the degrees of freedom.
    pooled = cv_factors(Design(12, hosts=3), 0.1392)
    assert pooled[0] > found.low
    assert pooled[1] < found.high


def test_chance_that_a_cv_repeats_is_that_of_simulated_repetitions() -> None:
    rng = np.random.default_rng(SEED)
    boots = 1 + 0.1392 * rng.normal(size=(4000, 24))
    inside = [
        found.low >= 0.5 * 0.1392 and found.high <= 1.5 * 0.1392
        for found in (cv_interval(row, 0.90) for row in boots)
    ]
    assert np.mean(inside) == pytest.approx(cv_margin_power(0.1392, 23, 0.5), abs=0.02)
    # Twelve boots, as many as the published CVs rest on: an even chance is not reached.
    assert cv_margin_power(0.1392, 11, 0.5) == pytest.approx(0.412, abs=0.001)
    assert fewest_boots(TWELVE, repeats_cv(0.5, 0.1392)) == 24


def test_detectable_spreads_are_found_as_often_as_said() -> None:
    assert f_test_power(12, detectable_spread(TWELVE)) == pytest.approx(0.80, abs=1e-6)
    anyhow = detectable_spread_anyhow(TWELVE)
    simulated = brown_forsythe_power(12, anyhow, seed=SEED)
    assert simulated.power == pytest.approx(0.80, abs=0.015)
    assert anyhow > detectable_spread(TWELVE)
    assert detectable_spread_anyhow(Design(2)) == math.inf
    with pytest.raises(FormatError):
        detectable_spread_anyhow(Design(401))


def test_the_fewest_boots_are_enough_and_one_less_is_not() -> None:
    for enough in (
        detects_ratio(0.05, 0.05, 0.02),
        meets_margin(0.05, 0.05, 0.02),
        repeats_cv(0.5, 0.05),
        detects_spread(2.0),
        detects_spread_anyhow(2.0),
    ):
        boots = fewest_boots(TWELVE, enough)
        assert boots is not None
        assert enough(replace(TWELVE, boots=boots))
        assert not enough(replace(TWELVE, boots=boots - 1))
    assert fewest_boots(TWELVE, detects_ratio(1e-6, 0.05, 0.05)) is None
    assert fewest_boots(TWELVE, lambda design: design.boots >= MOST_BOOTS) == MOST_BOOTS


def test_hosts_are_what_is_wanted_where_they_differ() -> None:
    design = Design(12, hosts=3, host_cv=0.03)
    enough = detects_ratio(0.05, 0.02, 0.02)
    assert fewest_boots(design, enough) is None  # no number of boots makes up for three hosts
    hosts = fewest_hosts(design, enough)
    assert hosts is not None
    assert detectable_ratio(replace(design, hosts=hosts), 0.02, 0.02) <= 1.05


def test_three_hosts_tell_little_of_hosts() -> None:
    low, high = host_sd_factors(Design(12, hosts=3))
    assert (low, high) == pytest.approx((0.52, 6.28), abs=0.01)
    with pytest.raises(FormatError):
        host_sd_factors(TWELVE)


@given(
    st.integers(2, 60), st.integers(1, 6), st.floats(0.001, 0.3), st.floats(-0.9, 0.9),
    st.sampled_from([0.01, 0.05]), st.sampled_from([0.5, 0.8, 0.95]),
)  # fmt: skip
def test_more_boots_tell_more(
    boots: int, hosts: int, cv: float, correlation: float, alpha: float, power: float
) -> None:
    design = Design(boots, hosts, correlation, 0.0, alpha, power)
    more = replace(design, boots=boots + 1)
    assert 1 < detectable_ratio(more, cv, cv) < detectable_ratio(design, cv, cv)
    assert smallest_margin(more, cv, cv) <= smallest_margin(design, cv, cv)
    assert 1 < detectable_spread(more) < detectable_spread(design)


@pytest.mark.parametrize(
    "wrong", [{"boots": 1}, {"hosts": 0}, {"correlation": 1.0}, {"host_cv": -0.1}, {"alpha": 0.6}]
)
def test_a_design_that_is_none(wrong: dict[str, float]) -> None:
    with pytest.raises(FormatError):
        replace(TWELVE, **wrong)
