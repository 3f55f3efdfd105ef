"""Variance components of boots in hosts, with intervals: host, boot, total, share, and the mean.

Invariant: SDs and means are in the unit of the values; a bound below zero is zero; every interval
has a closed form, so that no fit can fail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from analysis.statistics.mean_squares import MeanSquares, mean_squares
from analysis.statistics.nested import SdInterval
from analysis.statistics.samples import Floats, sample
from records.errors import FormatError

# mls: modified large sample, R. K. Burdick and F. A. Graybill, Confidence Intervals on Variance
# Components (1992). satterthwaite: F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110-114.
TotalMethod = Literal["mls", "satterthwaite"]


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """What hosts and boots contribute. `mean`: over hosts, each counting once.

    `total` is the SD of a new boot on a new host; `share` the hosts' part of its variance, from 0
    to 1 (intraclass correlation). `share` and `host` are 0 where the hosts' means differ less than
    boots alone would make them.
    """

    hosts: int
    boots: int
    mean: float
    mean_low: float
    mean_high: float
    host: SdInterval
    boot: SdInterval
    total: SdInterval
    share: float
    share_low: float
    share_high: float
    confidence: float


@dataclass(frozen=True, slots=True)
class RemlComponents:
    """Restricted maximum likelihood estimates: mean over hosts, host SD and boot SD."""

    mean: float
    host_sd: float
    boot_sd: float


def variance_components(
    hosts: Sequence[ArrayLike], confidence: float = 0.95, method: TotalMethod = "mls"
) -> VarianceComponents:
    """Boots (values) within hosts (samples), balanced or not.

    host: N. Ting, R. K. Burdick, F. A. Graybill, S. Jeyaratnam and T.-F. C. Lu, Journal of
    Statistical Computation and Simulation 35 (1990) 135-143. boot: chi-square. total: F. A.
    Graybill and C.-M. Wang, Journal of the American Statistical Association 75 (1980) 869-873, or
    Satterthwaite. share: S. R. Searle, G. Casella and C. E. McCulloch, Variance Components (1992),
    section 3.6, exact where balanced. mean: t with one degree of freedom fewer than there are
    hosts. Unequal numbers of boots as in `mean_squares`. Satterthwaite is not offered for the host
    SD: for a difference of mean squares its degrees of freedom go to zero with the estimate.

    COVERAGE.md says how far these hold with two to five hosts. FormatError for fewer than two
    hosts, an empty one, no host with two boots, or boots that nowhere differ.
    """
    groups = [sample(values, 1) for values in hosts]
    squares = mean_squares(groups)
    if float(squares.boot) == 0:
        raise FormatError("boots do not differ within any host; nothing to compare hosts with")
    tail = (1 - confidence) / 2
    middle = float(np.mean([group.mean() for group in groups]))
    reach = float(mean_reach(squares, tail))
    host_variance = max(0.0, float(squares.host - squares.boot) / squares.size)
    boot_variance = float(squares.boot)
    share_low, share_high = (float(bound) for bound in share_bounds(squares, tail))
    return VarianceComponents(
        len(groups),
        sum(group.size for group in groups),
        middle,
        middle - reach,
        middle + reach,
        _interval(host_variance, host_bounds(squares, tail)),
        _interval(boot_variance, boot_bounds(squares, tail)),
        _interval(float(_total(squares)), total_bounds(squares, tail, method)),
        host_variance / (host_variance + boot_variance),
        share_low,
        share_high,
        confidence,
    )


def reml_components(hosts: Sequence[ArrayLike]) -> RemlComponents:
    """REML estimates: with unequal numbers of boots the ones that other software reports.

    H. D. Patterson and R. Thompson, Biometrika 58 (1971) 545-554; the likelihood is profiled down
    to the ratio of the two variances. Where numbers are equal and the host variance is not zero
    they are the ANOVA estimates, and either way the intervals are those of `variance_components`:
    those of the likelihood are for many hosts. Errors as there.
    """
    groups = [sample(values, 1) for values in hosts]
    squares = mean_squares(groups)
    within = float(squares.boot) * squares.free_boot
    if within == 0:
        raise FormatError("boots do not differ within any host; nothing to compare hosts with")
    sizes = np.array([group.size for group in groups], dtype=np.float64)
    means = np.array([group.mean() for group in groups])
    free = float(sizes.sum()) - 1

    def fitted(share: float) -> tuple[float, float, float]:
        ratio = share / (1 - share)
        weights = sizes / (1 + ratio * sizes)
        mean = float(np.average(means, weights=weights))
        boot = (within + float(np.sum(weights * (means - mean) ** 2))) / free
        deviance = free * math.log(boot) + float(np.sum(np.log1p(ratio * sizes)))
        return deviance + math.log(float(np.sum(weights))), mean, boot

    best = optimize.minimize_scalar(
        lambda share: fitted(share)[0],
        bounds=(0.0, 1 - 1e-9),
        method="bounded",
        options={"xatol": 1e-10},
    )
    # The bounded search never tries the edge itself, where no host variance is.
    share = 0.0 if fitted(0.0)[0] <= float(best.fun) else float(best.x)
    _, mean, boot = fitted(share)
    return RemlComponents(mean, math.sqrt(boot * share / (1 - share)), math.sqrt(boot))


def mean_reach(squares: MeanSquares, tail: float) -> Floats:
    """Half the width of the interval of the mean over hosts."""
    hosts = squares.free_host + 1
    quantile = float(stats.t.isf(tail, squares.free_host))
    return np.asarray(quantile * np.sqrt(squares.host / (hosts * squares.size)))


def boot_bounds(squares: MeanSquares, tail: float) -> tuple[Floats, Floats]:
    """Low and high of the boot variance."""
    sum_of_squares = squares.free_boot * squares.boot
    return (
        sum_of_squares / float(stats.chi2.isf(tail, squares.free_boot)),
        sum_of_squares / float(stats.chi2.ppf(tail, squares.free_boot)),
    )


def host_bounds(squares: MeanSquares, tail: float) -> tuple[Floats, Floats]:
    """Low and high of the host variance (Ting and others 1990)."""
    low_host, high_host = _margins(squares.free_host, tail)
    low_boot, high_boot = _margins(squares.free_boot, tail)
    f_high = float(stats.f.isf(tail, squares.free_host, squares.free_boot))
    f_low = float(stats.f.ppf(tail, squares.free_host, squares.free_boot))
    cross_low = ((f_high - 1) ** 2 - (low_host * f_high) ** 2 - high_boot**2) / f_high
    cross_high = ((1 - f_low) ** 2 - (high_host * f_low) ** 2 - low_boot**2) / f_low
    both = squares.host * squares.boot
    below = (low_host * squares.host) ** 2 + (high_boot * squares.boot) ** 2 + cross_low * both
    above = (high_host * squares.host) ** 2 + (low_boot * squares.boot) ** 2 + cross_high * both
    middle = squares.host - squares.boot
    return (
        np.maximum(0.0, (middle - np.sqrt(np.maximum(0.0, below))) / squares.size),
        np.maximum(0.0, (middle + np.sqrt(np.maximum(0.0, above))) / squares.size),
    )


def total_bounds(
    squares: MeanSquares, tail: float, method: TotalMethod = "mls"
) -> tuple[Floats, Floats]:
    """Low and high of the variance of a new boot on a new host."""
    total = _total(squares)
    of_host = squares.host / squares.size
    of_boot = (1 - 1 / squares.size) * squares.boot
    if method == "satterthwaite":
        parts = of_host**2 / squares.free_host + of_boot**2 / squares.free_boot
        free = total**2 / parts
        return free * total / stats.chi2.isf(tail, free), free * total / stats.chi2.ppf(tail, free)
    low_host, high_host = _margins(squares.free_host, tail)
    low_boot, high_boot = _margins(squares.free_boot, tail)
    return (
        total - np.sqrt((low_host * of_host) ** 2 + (low_boot * of_boot) ** 2),
        total + np.sqrt((high_host * of_host) ** 2 + (high_boot * of_boot) ** 2),
    )


def share_bounds(squares: MeanSquares, tail: float) -> tuple[Floats, Floats]:
    """Low and high of the hosts' share of the total variance."""
    bounds = []
    for quantile in (
        float(stats.f.isf(tail, squares.free_host, squares.free_boot)),
        float(stats.f.ppf(tail, squares.free_host, squares.free_boot)),
    ):
        excess = np.maximum(0.0, squares.host / (squares.boot * quantile) - 1)
        bounds.append(excess / (excess + squares.size))
    return bounds[0], bounds[1]


def _total(squares: MeanSquares) -> Floats:
    return squares.host / squares.size + (1 - 1 / squares.size) * squares.boot


def _margins(free: int, tail: float) -> tuple[float, float]:
    """How far a chi-square interval reaches below and above its mean square, as fractions."""
    return (
        1 - free / float(stats.chi2.isf(tail, free)),
        free / float(stats.chi2.ppf(tail, free)) - 1,
    )


def _interval(variance: float, bounds: tuple[Floats, Floats]) -> SdInterval:
    low, high = (math.sqrt(max(0.0, float(bound))) for bound in bounds)
    return SdInterval(math.sqrt(variance), low, high)
