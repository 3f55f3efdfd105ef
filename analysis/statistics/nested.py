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

from analysis.statistics.mean_squares import MeanSquares, mean_squares
from analysis.statistics.samples import Floats, sample
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
    that of T. Kalibera and R. Jones, ISMM 2013. `variance_components` adds the total SD, the mean
    over hosts and bounds of the share. COVERAGE.md: the host SD's interval holds under every shape
    of boots, the boot SD's under normal ones. FormatError for fewer than two hosts, an empty one,
    no host with two boots, or boots that nowhere differ.
    """
    groups = [sample(values, 1) for values in hosts]
    squares = mean_squares(groups)
    sizes = np.array([group.size for group in groups])
    total = int(sizes.sum())
    means = np.array([group.mean() for group in groups])
    grand = float(np.average(means, weights=sizes))
    square_host = float(np.sum(sizes * (means - grand) ** 2)) / squares.free_host
    square_boot, free_boot = float(squares.boot), squares.free_boot
    if square_boot == 0:
        raise FormatError("boots do not differ within any host; nothing to compare hosts with")
    size = (total - float(np.sum(sizes**2)) / total) / squares.free_host
    host_variance = max(0.0, (square_host - square_boot) / size)
    tail = (1 - confidence) / 2
    low, high = (float(bound) for bound in williams_tukey_bounds(squares, tail))
    return NestedEffects(
        hosts=len(groups),
        boots=total,
        grand_mean=grand,
        host=SdInterval(math.sqrt(host_variance), low, high),
        boot=SdInterval(
            math.sqrt(square_boot),
            math.sqrt(free_boot * square_boot / float(stats.chi2.ppf(1 - tail, free_boot))),
            math.sqrt(free_boot * square_boot / float(stats.chi2.ppf(tail, free_boot))),
        ),
        host_share=host_variance / (host_variance + square_boot),
        p_host=float(stats.f.sf(square_host / square_boot, squares.free_host, free_boot)),
        confidence=confidence,
        descriptive=len(groups) < _HOSTS_TO_INFER,
    )


def williams_tukey_bounds(squares: MeanSquares, tail: float) -> tuple[Floats, Floats]:
    """Low and high of the host SD, for each analysis of variance in `squares`."""
    bounds = []
    for share in (1 - tail, tail):
        quantile = float(stats.f.ppf(share, squares.free_host, squares.free_boot))
        chi = float(stats.chi2.ppf(share, squares.free_host))
        excess = squares.free_host * (squares.host - squares.boot * quantile)
        bounds.append(np.sqrt(np.maximum(0.0, excess / (squares.size * chi))))
    return np.minimum(*bounds), np.maximum(*bounds)
