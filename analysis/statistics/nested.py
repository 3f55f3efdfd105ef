"""Boots nested in hosts: how much of the spread belongs to hosts, how much to boots.

Invariant: variances are in the squared unit of the values, SDs in the unit; a negative estimate is
reported as zero and its lower bound is zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.statistics.samples import sample
from records.errors import FormatError

# With 3 hosts the interval of the host SD spans a factor of twelve: a description, not a finding.
_HOSTS_TO_INFER = 6


@dataclass(frozen=True, slots=True)
class SdInterval:
    """A standard deviation with its interval, in the unit of the values."""

    sd: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class NestedEffects:
    """One-way random effects: host SD, boot SD within a host, p of no host effect.

    `host_share` is the host variance over the sum of both; `descriptive` marks too few hosts to
    infer from.
    """

    hosts: int
    boots: int
    grand_mean: float
    host: SdInterval
    boot: SdInterval
    host_share: float
    p_host: float
    confidence: float
    descriptive: bool


def nested_effects(hosts: Sequence[ArrayLike], confidence: float = 0.95) -> NestedEffects:
    """ANOVA estimates for boots (values) within hosts (samples), balanced or not.

    Estimates: S. R. Searle, G. Casella and C. E. McCulloch, Variance Components (1992), section
    3.6. Boot SD: exact chi-square. Host SD: Williams-Tukey (J. S. Williams, Biometrika 49 (1962)
    278-281; J. W. Tukey, Annals of Mathematical Statistics 22 (1951)); for unequal numbers of boots
    with the mean square of the host means and the harmonic mean (J. D. Thomas and R. A. Hultquist,
    Annals of Statistics 6 (1978) 582-587), which is the same where they are equal. The design is
    that of T. Kalibera and R. Jones, ISMM 2013. FormatError for fewer than two hosts, an empty one,
    no host with two boots, or boots that nowhere differ.
    """
    groups = [sample(values, 1) for values in hosts]
    sizes = np.array([group.size for group in groups])
    total = int(sizes.sum())
    free_host, free_boot = len(groups) - 1, total - len(groups)
    if free_host < 1 or free_boot < 1:
        raise FormatError("two hosts are needed, and two boots on one of them")
    means = np.array([group.mean() for group in groups])
    grand = float(np.average(means, weights=sizes))
    square_host = float(np.sum(sizes * (means - grand) ** 2)) / free_host
    square_boot = sum(float(np.sum((g - g.mean()) ** 2)) for g in groups) / free_boot
    if square_boot == 0:
        raise FormatError("boots do not differ within any host; nothing to compare hosts with")
    size = (total - float(np.sum(sizes**2)) / total) / free_host
    host_variance = max(0.0, (square_host - square_boot) / size)
    tail = (1 - confidence) / 2
    return NestedEffects(
        hosts=len(groups),
        boots=total,
        grand_mean=grand,
        host=_host_interval(means, sizes, host_variance, square_boot, tail),
        boot=SdInterval(
            math.sqrt(square_boot),
            math.sqrt(free_boot * square_boot / float(stats.chi2.ppf(1 - tail, free_boot))),
            math.sqrt(free_boot * square_boot / float(stats.chi2.ppf(tail, free_boot))),
        ),
        host_share=host_variance / (host_variance + square_boot),
        p_host=float(stats.f.sf(square_host / square_boot, free_host, free_boot)),
        confidence=confidence,
        descriptive=len(groups) < _HOSTS_TO_INFER,
    )


def _host_interval(
    means: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    sizes: np.ndarray[tuple[int, ...], np.dtype[np.int_]],
    variance: float,
    square_boot: float,
    tail: float,
) -> SdInterval:
    free_host, free_boot = means.size - 1, int(sizes.sum()) - means.size
    harmonic = means.size / float(np.sum(1 / sizes))
    square = harmonic * float(means.var(ddof=1))
    bounds = []
    for share in (1 - tail, tail):
        quantile = float(stats.f.ppf(share, free_host, free_boot))
        chi = float(stats.chi2.ppf(share, free_host))
        bounds.append(max(0.0, free_host * (square - square_boot * quantile) / (harmonic * chi)))
    low, high = sorted(bounds)
    return SdInterval(math.sqrt(variance), math.sqrt(low), math.sqrt(high))
