"""What n boots can detect, before any is run.

Invariant: every figure is exact or carries the seed and number of simulations it was drawn with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from analysis.statistics.dispersion import expected_cv_bounds
from analysis.statistics.equivalence import Variances
from analysis.statistics.samples import Floats
from records.errors import FormatError

# Where the distribution of an estimated SD is summed: Gauss and Legendre's points.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_NEGLIGIBLE = 1e-13


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
    return variance_ratio_power(n - 1, sd_ratio, alpha)


def variance_ratio_power(free: int, sd_ratio: float, alpha: float = 0.05) -> float:
    """As `f_test_power`, by the degrees of freedom of each side."""
    high = float(stats.f.ppf(1 - alpha / 2, free, free)) / sd_ratio**2
    low = float(stats.f.ppf(alpha / 2, free, free)) / sd_ratio**2
    return float(stats.f.sf(high, free, free) + stats.f.cdf(low, free, free))


def difference_power(error: float, free: float, log_ratio: float, alpha: float = 0.05) -> float:
    """Power of the two-sided t test that a log ratio is 0, when it is `log_ratio`.

    `error` is the true standard error of the log ratio, `free` the degrees of freedom of its
    estimate. The tails of the noncentral t distribution, exact for normal log values (N. L. Johnson
    and B. L. Welch, Biometrika 31 (1940) 362-389), summed here over the estimated error, as scipy's
    give out far from the middle.
    """
    quantile, shift = float(stats.t.isf(alpha / 2, free)), log_ratio / error
    return _over_estimates(
        free,
        math.inf,
        lambda s: stats.norm.cdf(shift - quantile * s) + stats.norm.cdf(-shift - quantile * s),
    )


def equivalence_power(
    error: float, free: float, margin: float, true_ratio: float = 1.0, alpha: float = 0.05
) -> float:
    """Chance that TOST within 1 - margin .. 1 + margin succeeds, for a log ratio with this error.

    K. F. Phillips, Journal of Pharmacokinetics and Biopharmaceutics 18 (1990) 137-144: exact for
    normal log values, here summed over the estimated standard error. `error` and `free` as in
    `difference_power`. FormatError for a margin outside 0 to 1.
    """
    if not 0 < margin < 1:
        raise FormatError(f"a margin of {margin} is not a fraction between 0 and 1")
    return interval_inside_power(
        error,
        free,
        (math.log1p(-margin) - math.log(true_ratio), math.log1p(margin) - math.log(true_ratio)),
        alpha,
    )


def interval_inside_power(
    error: float, free: float, bounds: tuple[float, float], alpha: float
) -> float:
    """Chance that the 1 - 2 alpha interval of a normal estimate lies within bounds about its mean.

    `bounds` are relative to the true value, in the unit of `error`.
    """
    bottom, top = bounds
    quantile = float(stats.t.isf(alpha, free))
    return _over_estimates(
        free,
        (top - bottom) / (2 * quantile * error),
        lambda s: (
            stats.norm.cdf(top / error - quantile * s)
            - stats.norm.cdf(bottom / error + quantile * s)
        ),
    )


def _over_estimates(free: float, widest: float, chance: Callable[[Floats], Floats]) -> float:
    """Mean of a chance over the estimated standard error, as a fraction of the true one.

    That is a chi of `free` degrees over the root of them; beyond `widest` the chance is 0.
    """
    low = math.sqrt(float(stats.chi2.ppf(_NEGLIGIBLE, free)) / free)
    high = min(widest, math.sqrt(float(stats.chi2.isf(_NEGLIGIBLE, free)) / free))
    if high <= low:
        return 0.0
    s = low + (high - low) * (_NODES + 1) / 2
    density = 2 * free * s * stats.chi2.pdf(free * s**2, free)
    return float(np.sum(_WEIGHTS * density * chance(s)) * (high - low) / 2)


def cv_margin_power(cv: float, free: int, margin: float, confidence: float = 0.90) -> float:
    """Chance that the interval of a CV lies within 1 - margin .. 1 + margin times the true one.

    What an identical repetition has of being called a reproduction. For normal boots, whose
    squared CV is taken as the true one times chi-square over `free` (n - 1), as for a small CV it
    is; the interval is `cv_interval`'s of that confidence (Vangel 1996).
    """

    def low(factor: float) -> float:
        return float(expected_cv_bounds(cv * factor, free, confidence)[0]) / cv - (1 - margin)

    def high(factor: float) -> float:
        return float(expected_cv_bounds(cv * factor, free, confidence)[1]) / cv - (1 + margin)

    least = float(optimize.brentq(low, 1e-9, 1e3)) if low(1e3) > 0 else math.inf
    most = float(optimize.brentq(high, 1e-9, 1e3)) if high(1e3) > 0 else 1e3
    chance = stats.chi2.cdf(free * most**2, free) - stats.chi2.cdf(free * least**2, free)
    return max(0.0, float(chance))


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
