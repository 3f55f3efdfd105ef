"""Bootstrap over boots, never over requests: the boot is what was replicated.

Invariant: the seed is part of the result, and the same values and seed give the same interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.statistics.samples import Floats, sample
from records.errors import FormatError

# Takes a batch of resamples (last axis: the boots) and gives one number for each.
Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class BootstrapInterval:
    """An estimate with its BCa interval, and what it takes to draw it again."""

    estimate: float
    low: float
    high: float
    n: int
    confidence: float
    resamples: int
    seed: int


def mean(boots: Floats) -> Floats:
    """Mean over the last axis."""
    return np.asarray(boots.mean(axis=-1))


def median(boots: Floats) -> Floats:
    """Median over the last axis."""
    return np.asarray(np.median(boots, axis=-1))


def coefficient_of_variation(boots: Floats) -> Floats:
    """SD with n - 1 over mean, over the last axis."""
    return np.asarray(boots.std(axis=-1, ddof=1) / boots.mean(axis=-1))


def bca_interval(
    boots: ArrayLike,
    statistic: Statistic = mean,
    *,
    seed: int,
    confidence: float = 0.95,
    resamples: int = 9999,
) -> BootstrapInterval:
    """Bias-corrected and accelerated interval of a statistic over one value a boot.

    B. Efron, JASA 82 (1987) 171-185, as scipy.stats.bootstrap computes it. The interval of boots
    that do not differ is the point itself. COVERAGE.md: with few boots it is too narrow, at six
    by far; it is for statistics that have no formula. FormatError for fewer than three boots:
    their resamples are too few to speak of tails.
    """
    array = sample(boots, 3)
    estimate = float(statistic(array))
    if np.ptp(array) == 0:
        low = high = estimate
    else:
        low, high = (
            float(bound)
            for bound in bca_bounds(
                array, statistic, seed=seed, confidence=confidence, resamples=resamples
            )
        )
    if not (np.isfinite(low) and np.isfinite(high)):
        raise FormatError("the statistic is undefined on resamples of these boots")
    return BootstrapInterval(estimate, low, high, array.size, confidence, resamples, seed)


def bca_bounds(
    values: Floats, statistic: Statistic, *, seed: int, confidence: float, resamples: int
) -> tuple[Floats, Floats]:
    """Low and high of the BCa interval of each sample (last axis), none of them all equal."""
    result = stats.bootstrap(
        (values,),
        lambda x, axis=-1: statistic(np.moveaxis(x, axis, -1)),
        n_resamples=resamples,
        confidence_level=confidence,
        method="BCa",
        vectorized=True,
        axis=-1,
        rng=np.random.default_rng(seed),
    )
    return np.asarray(result.confidence_interval.low), np.asarray(result.confidence_interval.high)


def cluster_bca_interval(
    clusters: Sequence[ArrayLike],
    statistic: Statistic = mean,
    *,
    seed: int,
    confidence: float = 0.95,
    resamples: int = 9999,
) -> BootstrapInterval:
    """BCa interval of a statistic over boots that come in hosts, or in blocks: those are redrawn.

    Whole clusters are drawn with replacement, each with all its boots: A. C. Davison and D. V.
    Hinkley, Bootstrap Methods and their Application (1997), section 3.8, the first of their two
    schemes, which alone gives the variance between clusters its due; the acceleration comes from
    leaving out one cluster at a time. `n` counts the clusters. Few hosts give few different
    resamples (three hosts: ten): COVERAGE.md has it far too narrow with five, and short with ten
    still; there use the t interval of `variance_components`. FormatError for fewer than
    three clusters.
    """
    groups = [sample(values, 1) for values in clusters]
    if len(groups) < 3:
        raise FormatError(f"{len(groups)} clusters where at least 3 are needed")
    together = np.concatenate(groups)
    estimate = float(statistic(together))
    if np.ptp(together) == 0:
        return BootstrapInterval(
            estimate, estimate, estimate, len(groups), confidence, resamples, seed
        )
    result = stats.bootstrap(
        (np.arange(len(groups)),),
        lambda drawn: float(statistic(np.concatenate([groups[int(i)] for i in drawn]))),
        n_resamples=resamples,
        confidence_level=confidence,
        method="BCa",
        vectorized=False,
        rng=np.random.default_rng(seed),
    )
    low, high = (float(bound) for bound in result.confidence_interval)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise FormatError("the statistic is undefined on resamples of these clusters")
    return BootstrapInterval(estimate, low, high, len(groups), confidence, resamples, seed)
