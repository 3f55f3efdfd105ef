"""Spread of one sample relative to its mean, and the ratio of two spreads.

Invariant: intervals are two-sided and equal-tailed at the confidence that they carry. Those named
vangel, mckay, naive and F assume normal boots; kurtosis, widest and MAD do not.
COVERAGE.md, beside this file, has how often each holds the truth under normal, bimodal and skewed
boots. The `…_bounds` functions are the same arithmetic over many samples at once (last axis: the
boots).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.statistics.samples import Floats, sample
from records.errors import FormatError

CvMethod = Literal["vangel", "mckay", "naive", "kurtosis", "widest"]

# Vangel 1996: the approximation is for CV below about a third.
_CV_BOUND = 1 / 3
# Bonett 2006 trims the mean by 1 / (2 sqrt(n - 4)).
_LEAST_FOR_KURTOSIS = 5


@dataclass(frozen=True, slots=True)
class CvInterval:
    """A coefficient of variation (a fraction, not percent) with its interval.

    `high` is infinite where the method bounds the CV on one side only; `valid` is False when the
    estimate is at or over 1/3, where no method here is claimed to hold.
    """

    cv: float
    low: float
    high: float
    n: int
    confidence: float
    method: CvMethod
    valid: bool


@dataclass(frozen=True, slots=True)
class SpreadRatio:
    """SD of the first sample over that of the second, and two tests that it is 1."""

    ratio: float
    low: float
    high: float
    confidence: float
    p_f: float
    p_brown_forsythe: float


@dataclass(frozen=True, slots=True)
class MadRatio:
    """Mean absolute deviation from the median, of the first sample over that of the second.

    `low` and `high` bound the ratio of the population's deviations, normal or not.
    """

    ratio: float
    low: float
    high: float
    confidence: float


def cv_interval(
    values: ArrayLike, confidence: float = 0.95, method: CvMethod = "vangel"
) -> CvInterval:
    """CV (SD with n - 1 over mean) with an interval.

    For normal boots - vangel: modified McKay, M. G. Vangel, "Confidence intervals for a normal
    coefficient of variation", The American Statistician 50 (1996) 21-26. mckay: A. T. McKay,
    Journal of the Royal Statistical Society 95 (1932) 695-698. naive: the chi-square interval of
    the SD over the mean, the small-CV limit of both.

    For others - kurtosis: the SD's interval of D. G. Bonett, Computational Statistics & Data
    Analysis 50 (2006) 775-782, which widens or narrows with the estimated kurtosis; the variance of
    the mean and its covariance with the SD are added by the delta method. widest: from the lower
    low to the higher high of vangel and kurtosis. Both need five boots.

    Tables use vangel. By COVERAGE.md it is too wide where boots fall into two even groups, and
    misses where one boot in eight is slow, or boots have a slow tail; there widest is the one to
    read, and with fewer than 24 boots none is enough: a group that was not met cannot be told of.
    FormatError for fewer than two values (kurtosis, widest: five) or a mean not above zero.
    """
    array = sample(values, _LEAST_FOR_KURTOSIS if method in ("kurtosis", "widest") else 2)
    mean = float(array.mean())
    if mean <= 0:
        raise FormatError(f"a mean of {mean} has no coefficient of variation")
    cv, low, high = (float(bound) for bound in cv_bounds(array, confidence, method))
    return CvInterval(cv, low, high, array.size, confidence, method, cv < _CV_BOUND)


def cv_bounds(values: Floats, confidence: float, method: CvMethod) -> tuple[Floats, Floats, Floats]:
    """CV, low and high of each sample (last axis) of positive mean, as `cv_interval` gives them."""
    free = values.shape[-1] - 1
    cv = np.asarray(values.std(axis=-1, ddof=1) / values.mean(axis=-1))
    if method == "kurtosis":
        return cv, *_kurtosis_bounds(values, cv, confidence)
    low, high = expected_cv_bounds(cv, free, confidence, "vangel" if method == "widest" else method)
    if method == "widest":
        lower, higher = _kurtosis_bounds(values, cv, confidence)
        return cv, np.minimum(low, lower), np.maximum(high, higher)
    return cv, low, high


def expected_cv_bounds(
    cv: Floats | float, free: float, confidence: float = 0.95, method: CvMethod = "vangel"
) -> tuple[Floats, Floats]:
    """The interval around an estimate of this CV with so many degrees of freedom (n - 1).

    For what is planned, where there are no values yet; by kurtosis and widest there is none.
    """
    tail = (1 - confidence) / 2
    estimate = np.asarray(cv, dtype=np.float64)
    return (
        _cv_bound(estimate, free, float(stats.chi2.ppf(1 - tail, free)), method),
        _cv_bound(estimate, free, float(stats.chi2.ppf(tail, free)), method),
    )


def spread_ratio(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> SpreadRatio:
    """Ratio of two SDs with its F interval, the F test and the Brown-Forsythe test, two-sided.

    F: G. W. Snedecor and W. G. Cochran, Statistical Methods, 8th ed., section 6.12 (normal data).
    Brown-Forsythe: M. B. Brown and A. B. Forsythe, JASA 69 (1974) 364-367, deviations from medians;
    the interval that goes with it is `mad_ratio`. COVERAGE.md: with a rare slow group the F
    interval misses often, and the Brown-Forsythe p is the one to read.
    For relative spreads pass each sample divided by its mean. FormatError for fewer than two values
    a side, or for a second sample without spread.
    """
    one, two = sample(first, 2), sample(second, 2)
    free_one, free_two = one.size - 1, two.size - 1
    if two.std() == 0:
        raise FormatError("the second sample has no spread to compare with")
    ratio, low, high = (float(bound) for bound in spread_bounds(one, two, confidence))
    below = float(stats.f.cdf(ratio**2, free_one, free_two))
    above = float(stats.f.sf(ratio**2, free_one, free_two))
    p_f = min(1.0, 2 * min(below, above))
    return SpreadRatio(ratio, low, high, confidence, p_f, brown_forsythe(one, two))


def spread_bounds(one: Floats, two: Floats, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Ratio of SDs and its F interval for each pair of samples (last axis)."""
    free_one, free_two = one.shape[-1] - 1, two.shape[-1] - 1
    variance_ratio = np.asarray(one.var(axis=-1, ddof=1) / two.var(axis=-1, ddof=1))
    tail = (1 - confidence) / 2
    low = variance_ratio / float(stats.f.ppf(1 - tail, free_one, free_two))
    high = variance_ratio / float(stats.f.ppf(tail, free_one, free_two))
    return np.sqrt(variance_ratio), np.sqrt(low), np.sqrt(high)


def brown_forsythe(first: ArrayLike, second: ArrayLike) -> float:
    """p of the Brown-Forsythe test of equal spread; 1 when no value departs from its median."""
    one, two = sample(first, 2), sample(second, 2)
    if not np.any(one - np.median(one)) and not np.any(two - np.median(two)):
        return 1.0
    return float(stats.levene(one, two, center="median").pvalue)


def mad_ratio(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> MadRatio:
    """Ratio of two mean absolute deviations from the median, with an interval for any shape.

    D. G. Bonett and E. Seier, "Confidence intervals for mean absolute deviations", The American
    Statistician 57 (2003) 233-236, each deviation with the factor n / (n - 1). It compares what
    Brown-Forsythe tests. For relative spreads pass each sample divided by its mean. FormatError
    for fewer than three values a side, or a side that does not depart from its median.
    """
    one, two = sample(first, 3), sample(second, 3)
    if not np.any(one - np.median(one)) or not np.any(two - np.median(two)):
        raise FormatError("a sample has no spread to compare")
    ratio, low, high = (float(bound) for bound in mad_bounds(one, two, confidence))
    return MadRatio(ratio, low, high, confidence)


def mad_bounds(one: Floats, two: Floats, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Ratio of mean absolute deviations and its interval, for each pair of samples (last axis)."""
    log_one, variance_one = _log_mad(one)
    log_two, variance_two = _log_mad(two)
    reach = float(stats.norm.isf((1 - confidence) / 2)) * np.sqrt(variance_one + variance_two)
    difference = log_one - log_two
    return np.exp(difference), np.exp(difference - reach), np.exp(difference + reach)


def _log_mad(values: Floats) -> tuple[Floats, Floats]:
    """Log of the corrected mean absolute deviation, and the variance of that log."""
    n = values.shape[-1]
    median = np.median(values, axis=-1)
    deviation = np.abs(values - median[..., None]).mean(axis=-1)
    skew = (values.mean(axis=-1) - median) / deviation
    square = values.var(axis=-1, ddof=1) / deviation**2
    return np.log(n / (n - 1) * deviation), (skew**2 + square - 1) / n


def _cv_bound(cv: Floats, free: float, quantile: float, method: CvMethod) -> Floats:
    if method == "naive":
        return cv * math.sqrt(free / quantile)
    shift = 2.0 if method == "vangel" else 0.0
    square = ((quantile + shift) / (free + 1) - 1) * cv**2 + quantile / free
    bounded = square > 0
    return np.where(bounded, cv / np.sqrt(np.where(bounded, square, 1.0)), math.inf)


def _kurtosis_bounds(values: Floats, cv: Floats, confidence: float) -> tuple[Floats, Floats]:
    n = values.shape[-1]
    z = float(stats.norm.isf((1 - confidence) / 2))
    trimmed = stats.trim_mean(values, 1 / (2 * math.sqrt(n - 4)), axis=-1)
    centred = values - values.mean(axis=-1, keepdims=True)
    squares = (centred**2).sum(axis=-1)
    some = np.where(squares > 0, squares, 1.0)
    kurtosis = n * ((values - np.asarray(trimmed)[..., None]) ** 4).sum(axis=-1) / some**2
    skew = (centred**3).sum(axis=-1) / n / (some / n) ** 1.5
    factor = n / (n - z)
    of_sd = factor**2 * (kurtosis - (n - 3) / n) / (n - 1)
    of_mean = (4 * cv**2 - 4 * skew * cv) / n
    reach = z * np.sqrt(np.maximum(of_sd + of_mean, 0.0))
    middle = cv * math.sqrt(factor)
    return middle * np.exp(-reach / 2), middle * np.exp(reach / 2)
