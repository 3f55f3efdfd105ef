"""What a design can tell: n boots an arm on each of h hosts, and the fewest for a wanted answer.

Invariant: answers are exact for normal (log) values; those of Brown-Forsythe alone are simulated,
and carry a seed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, stats

from analysis.statistics.dispersion import expected_cv_bounds
from analysis.statistics.power import (
    cv_margin_power,
    difference_power,
    equivalence_power,
    variance_ratio_power,
)
from analysis.statistics.samples import Floats
from records.errors import FormatError

SEED = 20261130
MOST_BOOTS, MOST_HOSTS = 2000, 200
# Beyond so many boots a side Brown-Forsythe is not simulated: the arrays outgrow the answer.
MOST_SIMULATED = 400
SIMULATIONS = 4000
_LARGEST_LOG = math.log(sys.float_info.max)


@dataclass(frozen=True, slots=True)
class Design:
    """`boots` of every arm on each of `hosts`, in blocks of one boot an arm.

    `correlation` of two arms over blocks, 0 where blocks gain nothing; `host_cv`: by what fraction
    the ratio of two arms itself differs between hosts. Tests at level `alpha`, with that `power`.
    """

    boots: int
    hosts: int = 1
    correlation: float = 0.0
    host_cv: float = 0.0
    alpha: float = 0.05
    power: float = 0.80

    def __post_init__(self) -> None:
        if self.boots < 2 or self.hosts < 1:
            raise FormatError(f"{self.boots} boots on {self.hosts} hosts: at least 2 on 1")
        if not -1 < self.correlation < 1 or self.host_cv < 0:
            raise FormatError("a correlation lies between -1 and 1, and a CV is not negative")
        if not (0 < self.alpha < 0.5 and 0 < self.power < 1):
            raise FormatError("a level lies between 0 and 0.5, and a power between 0 and 1")

    @property
    def total(self) -> int:
        """Boots of an arm on all hosts."""
        return self.boots * self.hosts

    @property
    def free(self) -> int:
        """Degrees of freedom of the spread of an arm's boots, within hosts."""
        return self.hosts * (self.boots - 1)


def cv_factors(design: Design, cv: float, confidence: float = 0.95) -> tuple[float, float]:
    """Both ends of the interval around an estimate of this CV, as fractions (Vangel 1996)."""
    low, high = expected_cv_bounds(cv, design.free, confidence)
    return float(low), float(high)


def host_sd_factors(design: Design, confidence: float = 0.95) -> tuple[float, float]:
    """Between what factors of its estimate a host SD lies, were boots alike: at its narrowest.

    FormatError with a single host, which says nothing of hosts.
    """
    if design.hosts < 2:
        raise FormatError("one host says nothing of the spread over hosts")
    free, tail = design.hosts - 1, (1 - confidence) / 2
    return (
        math.sqrt(free / float(stats.chi2.isf(tail, free))),
        math.sqrt(free / float(stats.chi2.ppf(tail, free))),
    )


def ratio_error(design: Design, cv_one: float, cv_two: float) -> tuple[float, int]:
    """Standard error of the log ratio of two arms of these CVs, and its degrees of freedom.

    Paired by block: (s1^2 + s2^2 - 2 r s1 s2) / n with n - 1 over all blocks (W. G. Cochran and
    G. M. Cox, Experimental Designs, 1957, section 4.37). Where the ratio differs between hosts,
    hosts are what was replicated: their variance over h is added, and h - 1 degrees remain.
    FormatError for that on a single host.
    """
    one, two = _log_sd(cv_one), _log_sd(cv_two)
    square = (one**2 + two**2 - 2 * design.correlation * one * two) / design.total
    if not design.host_cv:
        return math.sqrt(square), design.total - 1
    if design.hosts < 2:
        raise FormatError("a ratio that differs between hosts needs two hosts or more")
    return math.sqrt(square + _log_sd(design.host_cv) ** 2 / design.hosts), design.hosts - 1


def detectable_ratio(design: Design, cv_one: float, cv_two: float) -> float:
    """The smallest ratio above 1 that the two-sided t test finds with the design's power.

    Infinite where it is beyond what floats hold.
    """
    error, free = ratio_error(design, cv_one, cv_two)
    # With so large a shift the test always finds it, whatever its degrees of freedom.
    most = 10 * float(stats.t.isf(design.alpha / 2, free)) + 10
    shift = optimize.brentq(
        lambda shift: difference_power(1.0, free, shift, design.alpha) - design.power, 1e-6, most
    )
    log_ratio = float(shift) * error
    return math.exp(log_ratio) if log_ratio < _LARGEST_LOG else math.inf


def smallest_margin(design: Design, cv_one: float, cv_two: float) -> float:
    """The narrowest margin within which TOST finds equal arms equivalent with the design's power.

    A fraction; infinite where none below 1 does.
    """
    error, free = ratio_error(design, cv_one, cv_two)

    def lacking(margin: float) -> float:
        return equivalence_power(error, free, margin, alpha=design.alpha) - design.power

    if lacking(0.999) < 0:
        return math.inf
    return float(optimize.brentq(lacking, 1e-9, 0.999, xtol=1e-8))


def detectable_spread(design: Design) -> float:
    """The smallest ratio of SDs above 1 that the F test finds with the design's power."""

    def lacking(log_ratio: float) -> float:
        return variance_ratio_power(design.free, math.exp(log_ratio), design.alpha) - design.power

    return math.exp(float(optimize.brentq(lacking, 0.0, 30.0)))


def detectable_spread_anyhow(design: Design, seed: int = SEED) -> float:
    """As `detectable_spread`, by Brown-Forsythe on normal boots, simulated; infinite where none.

    Infinite also with fewer than three boots of an arm on a host, whose deviations from their
    median tell nothing, and not to be asked for more than 400 in all (FormatError).
    """
    if design.total > MOST_SIMULATED:
        raise FormatError(f"{design.total} boots are more than are simulated")
    if design.boots < 3:
        return math.inf
    one, two = _deviations(design, seed)
    free = 2 * design.total - 2
    bound = float(stats.f.isf(design.alpha, 1, free))

    def lacking(log_ratio: float) -> float:
        return _rejecting(one, two, math.exp(log_ratio), bound, design.total) - design.power

    if lacking(0.0) >= 0:  # by chance: so near is the power to the level
        return 1.0
    if lacking(math.log(1e3)) < 0:
        return math.inf
    return math.exp(float(optimize.brentq(lacking, 0.0, math.log(1e3), xtol=1e-4)))


def fewest_boots(design: Design, enough: Callable[[Design], bool]) -> int | None:
    """Boots of an arm on each host from which on `enough` holds; None where MOST_BOOTS do not do.

    `enough` must not cease to hold with more boots.
    """
    return _fewest(lambda boots: enough(replace(design, boots=boots)), 2, MOST_BOOTS)


def fewest_hosts(design: Design, enough: Callable[[Design], bool]) -> int | None:
    """Hosts, two or more, each with the design's boots, from which on `enough` holds; else None."""
    return _fewest(lambda hosts: enough(replace(design, hosts=hosts)), 2, MOST_HOSTS)


def detects_ratio(wanted: float, cv_one: float, cv_two: float) -> Callable[[Design], bool]:
    """Whether a design finds a ratio of 1 + `wanted`."""
    return lambda design: detectable_ratio(design, cv_one, cv_two) <= 1 + wanted


def meets_margin(margin: float, cv_one: float, cv_two: float) -> Callable[[Design], bool]:
    """Whether a design finds equal arms equivalent within a margin."""
    return lambda design: (
        equivalence_power(*ratio_error(design, cv_one, cv_two), margin, alpha=design.alpha)
        >= design.power
    )


def repeats_cv(margin: float, cv: float) -> Callable[[Design], bool]:
    """Whether a design would call an identical repetition of a CV one, within a margin of it."""
    return lambda design: cv_margin_power(cv, design.free, margin) >= design.power


def detects_spread(wanted: float) -> Callable[[Design], bool]:
    """Whether the F test finds SDs in this ratio."""
    return lambda design: variance_ratio_power(design.free, wanted, design.alpha) >= design.power


def detects_spread_anyhow(wanted: float) -> Callable[[Design], bool]:
    """Whether Brown-Forsythe does; where more than 400 boots are needed the answer is no."""
    return lambda design: (
        design.total <= MOST_SIMULATED and detectable_spread_anyhow(design) <= wanted
    )


def _fewest(enough: Callable[[int], bool], least: int, most: int) -> int | None:
    """The least whole number that is enough, by doubling and halving."""
    low, high = least - 1, least
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _deviations(design: Design, seed: int) -> tuple[Floats, Floats]:
    """Mean and variance of the deviations from host medians, for two arms of SD 1."""
    rng = np.random.default_rng(seed)
    size = (2, SIMULATIONS, design.hosts, design.boots)
    values = rng.normal(size=size)
    away = np.abs(values - np.median(values, axis=-1, keepdims=True))
    flat = away.reshape(2, SIMULATIONS, design.total)
    return flat.mean(axis=-1), flat.var(axis=-1, ddof=1)


def _rejecting(means: Floats, squares: Floats, ratio: float, bound: float, total: int) -> float:
    """Share of simulations in which an SD `ratio` times the other is found."""
    spread = (ratio**2 * squares[0] + squares[1]) / total
    return float(np.mean((ratio * means[0] - means[1]) ** 2 / spread > bound))


def _log_sd(cv: float) -> float:
    """SD of the logs of log-normal values of this CV."""
    return math.sqrt(math.log1p(cv**2))
