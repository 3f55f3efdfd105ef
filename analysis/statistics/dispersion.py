"""Spread of one sample relative to its mean, and the ratio of two spreads.

Invariant: intervals are two-sided and equal-tailed at the confidence that they carry; all assume
normal data except Brown-Forsythe, which with bimodal boots is the one to read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.statistics.samples import sample
from records.errors import FormatError

CvMethod = Literal["vangel", "mckay", "naive"]

# Vangel 1996: the approximation is for CV below about a third.
_CV_BOUND = 1 / 3


@dataclass(frozen=True, slots=True)
class CvInterval:
    """A coefficient of variation (a fraction, not percent) with its interval.

    `high` is infinite where the method bounds the CV on one side only; `valid` is False when the
    estimate is at or over 1/3, where the approximation is not claimed to hold.
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


def cv_interval(
    values: ArrayLike, confidence: float = 0.95, method: CvMethod = "vangel"
) -> CvInterval:
    """CV (SD with n - 1 over mean) with an interval for normal data.

    vangel: modified McKay, M. G. Vangel, "Confidence intervals for a normal coefficient of
    variation", The American Statistician 50 (1996) 21-26. mckay: A. T. McKay, Journal of the Royal
    Statistical Society 95 (1932) 695-698. naive: the chi-square interval of the SD over the mean,
    the small-CV limit of both. FormatError for fewer than two values or a mean not above zero.
    """
    array = sample(values, 2)
    mean = float(array.mean())
    if mean <= 0:
        raise FormatError(f"a mean of {mean} has no coefficient of variation")
    cv, free = float(array.std(ddof=1)) / mean, array.size - 1
    tail = (1 - confidence) / 2
    low = _cv_bound(cv, free, float(stats.chi2.ppf(1 - tail, free)), method)
    high = _cv_bound(cv, free, float(stats.chi2.ppf(tail, free)), method)
    return CvInterval(cv, low, high, array.size, confidence, method, cv < _CV_BOUND)


def spread_ratio(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> SpreadRatio:
    """Ratio of two SDs with its F interval, the F test and the Brown-Forsythe test, two-sided.

    F: G. W. Snedecor and W. G. Cochran, Statistical Methods, 8th ed., section 6.12 (normal data).
    Brown-Forsythe: M. B. Brown and A. B. Forsythe, JASA 69 (1974) 364-367, deviations from medians.
    For relative spreads pass each sample divided by its mean. FormatError for fewer than two values
    a side, or for a second sample without spread.
    """
    one, two = sample(first, 2), sample(second, 2)
    free_one, free_two = one.size - 1, two.size - 1
    if two.std() == 0:
        raise FormatError("the second sample has no spread to compare with")
    variance_ratio = float(one.var(ddof=1) / two.var(ddof=1))
    tail = (1 - confidence) / 2
    low = variance_ratio / float(stats.f.ppf(1 - tail, free_one, free_two))
    high = variance_ratio / float(stats.f.ppf(tail, free_one, free_two))
    below = float(stats.f.cdf(variance_ratio, free_one, free_two))
    above = float(stats.f.sf(variance_ratio, free_one, free_two))
    return SpreadRatio(
        math.sqrt(variance_ratio),
        math.sqrt(low),
        math.sqrt(high),
        confidence,
        min(1.0, 2 * min(below, above)),
        brown_forsythe(one, two),
    )


def brown_forsythe(first: ArrayLike, second: ArrayLike) -> float:
    """p of the Brown-Forsythe test of equal spread; 1 when no value departs from its median."""
    one, two = sample(first, 2), sample(second, 2)
    if not np.any(one - np.median(one)) and not np.any(two - np.median(two)):
        return 1.0
    return float(stats.levene(one, two, center="median").pvalue)


def _cv_bound(cv: float, free: int, quantile: float, method: CvMethod) -> float:
    if method == "naive":
        return cv * math.sqrt(free / quantile)
    shift = 2.0 if method == "vangel" else 0.0
    square = ((quantile + shift) / (free + 1) - 1) * cv**2 + quantile / free
    return cv / math.sqrt(square) if square > 0 else math.inf
