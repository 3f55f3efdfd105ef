"""What n boots can detect, before any is run.

Invariant: every figure is exact or carries the seed and number of simulations it was drawn with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.statistics.equivalence import Variances
from analysis.statistics.samples import Floats
from records.errors import FormatError


@dataclass(frozen=True, slots=True)
class SimulatedPower:
    """Share of simulations in which the test rejects, with its own standard error."""

    power: float
    standard_error: float
    simulations: int
    seed: int


def f_test_power(n: int, sd_ratio: float, alpha: float = 0.05) -> float:
    """Power of the two-sided F test when one SD is `sd_ratio` times the other, n boots a side.

    Exact for normal data: the variance ratio is sd_ratio squared times an F variable.
    """
    _need(n, 2)
    free = n - 1
    high = float(stats.f.ppf(1 - alpha / 2, free, free)) / sd_ratio**2
    low = float(stats.f.ppf(alpha / 2, free, free)) / sd_ratio**2
    return float(stats.f.sf(high, free, free) + stats.f.cdf(low, free, free))


def brown_forsythe_power(
    n: int, sd_ratio: float, *, seed: int, alpha: float = 0.05, simulations: int = 20_000
) -> SimulatedPower:
    """Power of Brown-Forsythe on normal data, n boots a side, by simulation.

    M. B. Brown and A. B. Forsythe, JASA 69 (1974) 364-367; for two groups the statistic is the
    square of the t statistic of the deviations from the medians.
    """
    _need(n, 3)
    rng = np.random.default_rng(seed)
    one = _deviations(rng.normal(size=(simulations, n)) * sd_ratio)
    two = _deviations(rng.normal(size=(simulations, n)))
    spread = (one.var(axis=1, ddof=1) + two.var(axis=1, ddof=1)) / n
    statistic = (one.mean(axis=1) - two.mean(axis=1)) ** 2 / spread
    rejects = statistic > float(stats.f.ppf(1 - alpha, 1, 2 * n - 2))
    return _share(rejects, seed)


def tost_power(
    n: int,
    cv: float,
    margin: float,
    *,
    seed: int,
    true_ratio: float = 1.0,
    alpha: float = 0.05,
    simulations: int = 20_000,
    variances: Variances = "welch",
) -> SimulatedPower:
    """Power of `tost_ratio`, n log-normal boots a side of this CV (a fraction), by simulation."""
    _need(n, 2)
    rng = np.random.default_rng(seed)
    sigma = math.sqrt(math.log1p(cv**2))
    one = rng.normal(math.log(true_ratio), sigma, (simulations, n))
    two = rng.normal(0, sigma, (simulations, n))
    part_one, part_two = one.var(axis=1, ddof=1) / n, two.var(axis=1, ddof=1) / n
    square = part_one + part_two
    welch = square**2 * (n - 1) / (part_one**2 + part_two**2)
    # With n boots on both sides the standard errors are the same; only the freedom differs.
    free = welch if variances == "welch" else np.full_like(welch, 2 * n - 2)
    reach = stats.t.ppf(1 - alpha, free) * np.sqrt(square)
    difference = one.mean(axis=1) - two.mean(axis=1)
    inside = (difference - reach > math.log1p(-margin)) & (difference + reach < math.log1p(margin))
    return _share(inside, seed)


def _deviations(values: Floats) -> Floats:
    return np.abs(values - np.median(values, axis=1, keepdims=True))


def _share(hits: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], seed: int) -> SimulatedPower:
    share = float(hits.mean())
    return SimulatedPower(share, math.sqrt(share * (1 - share) / hits.size), hits.size, seed)


def _need(n: int, least: int) -> None:
    if n < least:
        raise FormatError(f"{n} boots a side where at least {least} are needed")
