"""Bootstrap over boots, never over requests: the boot is what was replicated.

Invariant: the seed is part of the result, and the same values and seed give the same interval.
"""

from __future__ import annotations

from collections.abc import Callable
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
    that do not differ is the point itself. FormatError for fewer than three boots: their resamples
    are too few to speak of tails.
    """
    array = sample(boots, 3)
    estimate = float(statistic(array))
    if np.ptp(array) == 0:
        return BootstrapInterval(
            estimate, estimate, estimate, array.size, confidence, resamples, seed
        )
    result = stats.bootstrap(
        (array,),
        lambda x, axis=-1: statistic(np.moveaxis(x, axis, -1)),
        n_resamples=resamples,
        confidence_level=confidence,
        method="BCa",
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
    low, high = (float(bound) for bound in result.confidence_interval)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise FormatError("the statistic is undefined on resamples of these boots")
    return BootstrapInterval(estimate, low, high, array.size, confidence, resamples, seed)
