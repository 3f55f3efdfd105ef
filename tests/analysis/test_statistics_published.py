"""Intervals, blocks, components and adjusted p values against figures that others published."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from analysis.statistics import (
    bca_interval,
    benjamini_hochberg,
    blocked_ratio,
    cluster_bca_interval,
    cv_interval,
    holm,
    mad_ratio,
    nested_effects,
    randomised_blocks,
    reml_components,
    spread_ratio,
    tost_blocks,
    tost_ratio,
    variance_components,
)
from analysis.statistics.components import host_bounds
from analysis.statistics.mean_squares import MeanSquares
from analysis.statistics.resampling import mean
from records.errors import FormatError

SEED = 20261130
# Examples of statpsych 1.4's ci.ratio.mad2 and ci.mad (D. G. Bonett, CRAN), which prints them.
BONETT_ONE = [32, 39, 26, 35, 43, 27, 40, 37, 34, 29]
BONETT_TWO = [36, 44, 47, 42, 49, 39, 46, 31, 33, 48]
# Montgomery, Design and Analysis of Experiments (2013), example 4.1: four pressures (rows) on six
# batches of resin; its section 4.1 has the mean squares and the efficiency of 1.87.
GRAFTS = [
    [90.3, 89.2, 98.2, 93.9, 87.4, 97.9],
    [92.5, 89.5, 90.6, 94.7, 87.0, 95.8],
    [85.5, 90.8, 89.6, 86.2, 88.0, 93.4],
    [82.5, 89.5, 85.6, 87.4, 78.9, 90.7],
]
# Montgomery, example 3.11: strength of fabric from four looms; printed there: components 6.96 and
# 1.90, share of the looms 0.39 to 0.98.
LOOMS = [[98, 97, 99, 96], [91, 90, 93, 92], [96, 95, 97, 95], [95, 96, 99, 98]]
# Efron and Tibshirani, An Introduction to the Bootstrap (1993), table 14.1, spatial task A.
SPATIAL = [48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6]
SPATIAL += [0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41]
UNEQUAL = [[46, 31, 37, 62, 30], [70, 59], [52, 44, 57, 40, 67, 64, 70], [47, 21, 70, 46, 14]]


def test_cv_intervals_as_confint_cv_of_r_prints_them() -> None:
    # K. Wright's confint.cv, run in https://forum.bebac.at/forum_entry.php?id=18576
    values = [3.8, 3.9, 3.9, 3.8, 4.1, 4.0, 3.4, 3.6, 3.8, 3.7]
    vangel, mckay, naive = (
        cv_interval(values, method=method) for method in ("vangel", "mckay", "naive")
    )
    assert vangel.cv == pytest.approx(0.05263158, abs=5e-9)
    assert (vangel.low, vangel.high) == pytest.approx((0.03617573, 0.09632067), abs=5e-9)
    assert (mckay.low, mckay.high) == pytest.approx((0.03618047, 0.09641016), abs=5e-9)
    assert (naive.low, naive.high) == pytest.approx((0.03620185, 0.09608475), abs=5e-9)


def test_f_test_on_the_ceramic_strengths_of_the_nist_handbook() -> None:
    # NIST/SEMATECH e-Handbook, section 1.3.5.9: 240 a batch, SDs 65.54909 and 61.85425,
    # F 1.123037, its distribution function 0.814808; bounds of acceptance 0.7756 and 1.2894.
    shape = np.arange(240.0)
    shape = (shape - shape.mean()) / shape.std(ddof=1)
    found = spread_ratio(65.54909 * shape, 61.85425 * shape)
    assert found.ratio**2 == pytest.approx(1.123037, abs=5e-7)
    assert found.p_f == pytest.approx(2 * (1 - 0.814808), abs=2e-6)
    assert found.ratio**2 / found.low**2 == pytest.approx(1.2894, abs=5e-5)
    assert found.ratio**2 / found.high**2 == pytest.approx(0.7756, abs=5e-5)


def test_ratio_of_mean_absolute_deviations_as_statpsych_prints_it() -> None:
    found = mad_ratio(BONETT_ONE, BONETT_TWO)
    assert (found.ratio, found.low, found.high) == pytest.approx(
        (0.8679245, 0.4520879, 1.666253), abs=5e-7
    )
    swapped = mad_ratio(BONETT_TWO, BONETT_ONE)
    assert (1 / swapped.ratio, 1 / swapped.high) == pytest.approx((found.ratio, found.low))
    for bad in ([1.0, 2.0], [2.0, 2.0, 2.0]):
        with pytest.raises(FormatError):
            mad_ratio(BONETT_ONE, bad)


def test_cv_by_kurtosis_is_bonetts_interval_of_the_sd_where_the_mean_is_far_off() -> None:
    values = np.array(BONETT_ONE, dtype=float)
    n, z = values.size, stats.norm.isf(0.025)
    trimmed = stats.trim_mean(values, 1 / (2 * math.sqrt(n - 4)))
    kurtosis = n * np.sum((values - trimmed) ** 4) / np.sum((values - values.mean()) ** 2) ** 2
    factor = n / (n - z)
    error = factor * math.sqrt((kurtosis - (n - 3) / n) / (n - 1))
    wanted = [
        math.sqrt(factor * values.var(ddof=1) * math.exp(sign * z * error)) for sign in (-1, 1)
    ]
    far = values + 1e6
    found = cv_interval(far, method="kurtosis")
    assert [found.low * far.mean(), found.high * far.mean()] == pytest.approx(wanted, rel=1e-4)
    with pytest.raises(FormatError):
        cv_interval([1.0, 2.0, 3.0, 4.0], method="kurtosis")


def test_bca_on_efron_and_tibshiranis_spatial_test() -> None:
    # Their table 14.2: variance with divisor n 171.5, BCa from 115.8 to 259.6 at 90 %.
    found = bca_interval(SPATIAL, lambda x: x.var(axis=-1), seed=SEED, confidence=0.90)
    assert found.estimate == pytest.approx(171.5, abs=0.05)
    assert (found.low, found.high) == pytest.approx((115.8, 259.6), rel=0.02)


def test_blocks_on_montgomerys_vascular_grafts() -> None:
    found = randomised_blocks(GRAFTS)
    assert (found.arms, found.blocks) == (4, 6)
    assert 3 * found.square_arms == pytest.approx(178.17, abs=0.005)
    assert 5 * found.square_blocks == pytest.approx(192.25, abs=0.005)
    assert 15 * found.square_error == pytest.approx(109.89, abs=0.005)
    assert found.p_arms == pytest.approx(0.0019, abs=5e-5)
    assert found.square_unblocked == pytest.approx(14.10, abs=0.01)
    assert found.relative_efficiency == pytest.approx(1.87, abs=0.005)
    for bad in ([[1.0, 2.0]], [[1.0, 2.0], [1.0]], [[1.0, 2.0], [3.0, 4.0]]):
        with pytest.raises(FormatError):
            randomised_blocks(bad)


@pytest.mark.parametrize(("block_sd", "gain"), [(0.0, 1.0), (0.03, 10.0)])
def test_gain_is_the_ratio_of_the_variances_that_simulation_gives(
    block_sd: float, gain: float
) -> None:
    rng = np.random.default_rng(SEED)
    boots, blocks, runs = 0.01, 12, 1500
    ratios, told, without = [], [], []
    for _ in range(runs):
        of_block = rng.normal(0, block_sd, blocks)
        one, two = np.exp(of_block + rng.normal(0, boots, (2, blocks)))
        found = blocked_ratio(one, two)
        ratios.append(math.log(found.ratio))
        told.append(found.variance)
        without.append(found.unblocked_variance)
    assert np.mean(told) == pytest.approx(2 * boots**2 / blocks, rel=0.05)
    assert np.var(ratios) == pytest.approx(np.mean(told), rel=0.10)
    unblocked = 2 * (boots**2 + block_sd**2) / blocks
    assert np.mean(without) == pytest.approx(unblocked, rel=0.05)
    assert np.mean(without) / np.mean(told) == pytest.approx(gain, rel=0.08)


def test_blocked_ratio_is_the_paired_t_interval_and_tost_agrees() -> None:
    one, two = np.array(GRAFTS[0]), np.array(GRAFTS[3])
    found = blocked_ratio(one, two, 0.90)
    paired = stats.ttest_rel(np.log(one), np.log(two)).confidence_interval(0.90)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((paired.low, paired.high))
    assert found.correlation == pytest.approx(np.corrcoef(np.log(one), np.log(two))[0, 1])
    tested = tost_blocks(one, two, 0.20)
    assert (tested.low, tested.ratio, tested.high) == pytest.approx(
        (found.low, found.ratio, found.high)
    )
    lower = stats.ttest_1samp(np.log(one / two), math.log(0.8), alternative="greater").pvalue
    upper = stats.ttest_1samp(np.log(one / two), math.log(1.2), alternative="less").pvalue
    assert tested.p == pytest.approx(max(lower, upper))
    assert tested.equivalent == (tested.p < 0.05)
    with pytest.raises(FormatError):
        tost_blocks(one, two[:-1], 0.05)


def test_blocks_decide_where_unpaired_boots_do_not() -> None:
    day = np.array([1.0, 1.3, 0.8, 1.1, 0.9, 1.25])
    two = day * np.array([1.001, 0.998, 1.002, 1.0, 0.999, 1.001])
    assert tost_blocks(day, two, 0.05).equivalent
    assert not tost_ratio(day, two, 0.05).equivalent


def test_components_on_montgomerys_looms() -> None:
    found = variance_components(LOOMS)
    assert found.host.sd**2 == pytest.approx(6.96, abs=0.005)
    assert found.boot.sd**2 == pytest.approx(1.90, abs=0.005)
    assert (found.share_low, found.share_high) == pytest.approx((0.39, 0.98), abs=0.005)
    # The published interval of the error: 12 x 1.90 over 23.34 and 4.40.
    assert (found.boot.low**2, found.boot.high**2) == pytest.approx((0.97, 5.18), abs=0.015)
    assert found.total.sd**2 == pytest.approx(6.96 + 1.90, abs=0.01)
    assert found.mean == pytest.approx(95.44, abs=0.005)
    for bad in ([[1.0, 2.0]], [[1.0], [2.0]], [[1.0, 1.0], [2.0, 2.0]]):
        with pytest.raises(FormatError):
            variance_components(bad)


def test_the_intervals_of_the_host_sd_are_near_each_other_and_agree_on_zero() -> None:
    one, two = variance_components(LOOMS), nested_effects(LOOMS)
    assert one.host.sd == pytest.approx(two.host.sd)
    assert (one.host.low, one.host.high) == pytest.approx((two.host.low, two.host.high), rel=0.06)
    # Ting and others: without boot variance it is the chi-square interval of the hosts, and the
    # lower bound leaves zero exactly where the F test leaves its level.
    alone = MeanSquares(np.array(5.0), np.array(0.0), 3, 12, 4.0)
    low, high = host_bounds(alone, 0.025)
    assert low == pytest.approx(3 * 5 / stats.chi2.isf(0.025, 3) / 4)
    assert high == pytest.approx(3 * 5 / stats.chi2.ppf(0.025, 3) / 4)
    edge = stats.f.isf(0.025, 3, 12)
    for factor in (0.999, 1.001):
        squares = MeanSquares(np.array(edge * factor), np.array(1.0), 3, 12, 4.0)
        assert (host_bounds(squares, 0.025)[0] > 0) == (factor > 1)


def test_satterthwaite_of_the_total_worked_by_hand() -> None:
    found = variance_components(LOOMS, method="satterthwaite")
    of_host, of_boot = 29.729 / 4, 0.75 * 1.8958
    free = (of_host + of_boot) ** 2 / (of_host**2 / 3 + of_boot**2 / 12)
    assert found.total.high**2 == pytest.approx(
        free * (of_host + of_boot) / stats.chi2.ppf(0.025, free), rel=1e-3
    )


def test_reml_is_anova_where_boots_are_equal_and_the_maximum_where_not() -> None:
    balanced, anova = reml_components(LOOMS), variance_components(LOOMS)
    assert (balanced.host_sd, balanced.boot_sd) == pytest.approx(
        (anova.host.sd, anova.boot.sd), rel=1e-6
    )
    values = np.concatenate(UNEQUAL).astype(float)
    owner = np.repeat(np.arange(len(UNEQUAL)), [len(g) for g in UNEQUAL])
    same = (owner[:, None] == owner[None, :]).astype(float)

    def deviance(logs: np.ndarray) -> float:
        """Minus twice the restricted likelihood, from the whole covariance matrix."""
        host, boot = np.exp(logs)
        covariance = host * same + boot * np.eye(values.size)
        inverse = np.linalg.inv(covariance)
        weight = inverse.sum()
        middle = (inverse @ values).sum() / weight
        rest = values - middle
        log_determinant = float(np.linalg.slogdet(covariance)[1])
        return log_determinant + math.log(weight) + float(rest @ inverse @ rest)

    best = optimize.minimize(deviance, [3.0, 5.0], method="Nelder-Mead", options={"xatol": 1e-9})
    found = reml_components(UNEQUAL)
    assert [found.host_sd**2, found.boot_sd**2] == pytest.approx(np.exp(best.x), rel=1e-4)
    # Hosts alike: no host variance, and the boots' is that of all together.
    alike = reml_components([[1.0, 2.0, 3.0], [3.0, 1.0], [2.0, 2.5, 1.5]])
    together = np.std([1.0, 2.0, 3.0, 3.0, 1.0, 2.0, 2.5, 1.5], ddof=1)
    assert (alike.host_sd, alike.boot_sd) == pytest.approx((0.0, together))


def test_clusters_are_redrawn_whole() -> None:
    rng = np.random.default_rng(SEED)
    hosts = [rng.normal(level, 0.1, 20) for level in rng.normal(100, 5, 12)]
    found = cluster_bca_interval(hosts, seed=3, resamples=1999)
    assert found == cluster_bca_interval(hosts, seed=3, resamples=1999)
    assert (found.n, found.seed) == (12, 3)
    # Twenty boots a host say little more than one: as wide as the bootstrap over host means.
    over_means = bca_interval([h.mean() for h in hosts], mean, seed=3, resamples=1999)
    assert found.high - found.low == pytest.approx(over_means.high - over_means.low, rel=0.05)
    boots = bca_interval(np.concatenate(hosts), seed=3, resamples=1999)
    assert found.high - found.low > 3 * (boots.high - boots.low)
    same = cluster_bca_interval([[2.0], [2.0, 2.0], [2.0]], seed=1)
    assert (same.low, same.high) == (2.0, 2.0)
    with pytest.raises(FormatError):
        cluster_bca_interval([[1.0, 2.0], [3.0]], seed=1)


def test_adjusted_p_values_as_published() -> None:
    # Benjamini and Hochberg (1995), section 3.2: fifteen tests; four pass at 5 %, by Bonferroni
    # three, and by Holm's steps the same three.
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    p += [0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    assert sum(q <= 0.05 for q in benjamini_hochberg(p)) == 4
    assert sum(q <= 0.05 for q in holm(p)) == 3
    # The documentation of stdlib's padjust, checked there against R's p.adjust.
    found = holm([0.319, 0.201, 0.4, 0.374, 0.113])
    assert found == pytest.approx((0.957, 0.804, 0.957, 0.957, 0.565))
    discovered = benjamini_hochberg([0.008, 0.03, 0.123, 0.6, 0.2])
    assert discovered == pytest.approx((0.04, 0.075, 0.205, 0.6, 0.25))
    for bad in ([], [1.2], [-0.1], [math.nan]):
        with pytest.raises(FormatError):
            holm(bad)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusting_never_lowers_a_p_nor_swaps_two(values: list[float]) -> None:
    for adjust in (holm, benjamini_hochberg):
        found = adjust(values)
        assert all(p - 1e-15 <= q <= 1 for p, q in zip(values, found, strict=True))
        order = np.argsort(values, kind="stable")
        assert np.all(np.diff(np.array(found)[order]) >= -1e-15)
    assert all(
        h >= b - 1e-15 for h, b in zip(holm(values), benjamini_hochberg(values), strict=True)
    )


def test_holm_bounds_the_chance_of_any_false_claim() -> None:
    rng = np.random.default_rng(SEED)
    # Five true hypotheses that share an arm: correlated one half.
    shared, own = rng.normal(size=(4000, 1)), rng.normal(size=(4000, 5))
    p = 2 * stats.norm.sf(np.abs((shared + own) / math.sqrt(2)))
    assert np.mean([min(holm(row)) <= 0.05 for row in p]) <= 0.055
    assert np.mean(p.min(axis=1) <= 0.05) > 0.15
