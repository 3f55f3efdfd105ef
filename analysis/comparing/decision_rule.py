"""From an estimate, its error and a margin to two p values: within the margin, and outside of it.

Invariant: each of the two is the p of a test at its own level, and they cannot both be small; a
decision needs the smaller one below the level of the family.

Within: two one-sided tests (D. J. Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15
(1987) 657-680). Outside: the one-sided test at the margin's nearer end. At level alpha they say the
same as the interval of confidence 1 - 2 alpha: wholly within, or wholly outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.comparing.verdict import Interval
from analysis.statistics.dispersion import expected_cv_bounds
from analysis.statistics.equivalence import one_sided_p
from analysis.statistics.samples import Floats

POWER = 0.8
MOST_BOOTS = 1000
# The least number of boots that decides with this power at a level; None above MOST_BOOTS.
Needs = Callable[[float], int | None]


@dataclass(frozen=True, slots=True)
class Decided:
    """An estimate under both tests. `needed(level)`: boots that would decide it, None: too many."""

    estimate: float
    interval: Interval
    p_within: float
    p_outside: float
    needed: Needs

    @property
    def p(self) -> float:
        """That of the decision that the estimate leans to."""
        return min(self.p_within, self.p_outside)

    @property
    def leans_within(self) -> bool:
        """Which of the two that is."""
        return self.p_within <= self.p_outside


@dataclass(frozen=True, slots=True)
class Spread:
    """A CV within hosts, with its degrees of freedom."""

    cv: float
    free: int
    boots: int
    hosts: int


def log_ratio(
    difference: float,
    error: float,
    free: float,
    margin: tuple[float, float],
    slack: float = 0.0,
    alpha: float = 0.05,
    sides: int = 2,
) -> Decided:
    """Decide on a difference of logs with its standard error; everything is given as a ratio.

    `margin`: ratios, as 0.95 and 1.05. `slack`: by how much, as a log, both measurements together
    may be off whatever the number of boots; each test reckons with the worst of it. `sides`: how
    many samples grow with n.
    """
    low, high = math.log(margin[0]), math.log(margin[1])
    inside = min(difference - low, high - difference) - slack
    outside = max(low - difference, difference - high) - slack
    reach = float(stats.t.isf(alpha, free)) * error
    boots = (free / sides) + 1

    def needed(level: float) -> int | None:
        if max(inside, outside) <= 0:
            return None
        n = np.arange(2.0, MOST_BOOTS + 1)
        errors = error * np.sqrt(boots / n)
        critical = stats.t.isf(level, sides * (n - 1))
        if inside > outside:
            away = high - slack - difference, difference - low - slack
            one, two = (np.asarray(stats.norm.cdf(room / errors - critical)) for room in away)
            return _first(n, one + two - 1)
        return _first(n, np.asarray(stats.norm.cdf(outside / errors - critical)))

    return Decided(
        math.exp(difference),
        Interval(math.exp(difference - reach), math.exp(difference + reach), 1 - 2 * alpha),
        one_sided_p(inside, error, free),
        one_sided_p(outside, error, free),
        needed,
    )


def coefficient(spread: Spread, margin: tuple[float, float], alpha: float = 0.05) -> Decided:
    """Decide on a CV (a fraction) by the modified McKay interval.

    M. G. Vangel, The American Statistician 50 (1996) 21-26: the p values are the tails at which the
    interval's end comes to lie on the margin's. For normal boots; with boots in two groups look at
    the dots.
    """
    cv, free = spread.cv, spread.free
    at_low, at_high = (_quantile(cv, free, bound) for bound in margin)
    below_high = float(stats.chi2.cdf(at_high, free))
    above_low = float(stats.chi2.sf(at_low, free))
    low, high = (float(b) for b in expected_cv_bounds(cv, free, 1 - 2 * alpha, "vangel"))

    def needed(level: float) -> int | None:
        if cv in (0.0, *margin):
            return None
        n = np.arange(3.0, MOST_BOOTS + 1)
        f = n - 1
        least = _estimate_at(_upper(level, f), f, margin[0])
        most = _estimate_at(_lower(level, f), f, margin[1])
        if margin[0] < cv < margin[1]:
            power = stats.chi2.cdf(f * (most / cv) ** 2, f) - stats.chi2.cdf(
                f * (least / cv) ** 2, f
            )
        elif cv > margin[1]:
            beyond = _estimate_at(_upper(level, f), f, margin[1])
            power = stats.chi2.sf(f * (beyond / cv) ** 2, f)
        else:
            beyond = _estimate_at(_lower(level, f), f, margin[0])
            power = stats.chi2.cdf(f * (beyond / cv) ** 2, f)
        return _first(n, np.asarray(power))

    return Decided(
        cv,
        Interval(low, high, 1 - 2 * alpha),
        max(below_high, above_low),
        min(1 - below_high, 1 - above_low),
        needed,
    )


def spread_within(by_host: dict[str, list[float]]) -> Spread | None:
    """CV of boots within hosts: each value over its host's mean; None where no host has two.

    With one host it is SD (n - 1) over mean. With several it is pooled over them, so that what
    hosts differ by is not taken for a spread of boots.
    """
    groups = [np.asarray(values, dtype=np.float64) for values in by_host.values() if values]
    boots = sum(group.size for group in groups)
    free = boots - len(groups)
    if free < 1:
        return None
    squares = sum(float(np.sum((group / group.mean() - 1) ** 2)) for group in groups)
    return Spread(math.sqrt(squares / free), free, boots, len(groups))


def _upper(level: float, free: Floats) -> Floats:
    return np.asarray(stats.chi2.isf(level, free))


def _lower(level: float, free: Floats) -> Floats:
    return np.asarray(stats.chi2.ppf(level, free))


def _quantile(cv: float, free: int, bound: float) -> float:
    """The chi-square quantile at which an end of the interval around `cv` lies on `bound`."""
    n = free + 1
    return float(cv**2 * (1 / bound**2 + 1 - 2 / n) / (cv**2 / n + 1 / free))


def _estimate_at(quantile: Floats, free: Floats, bound: float) -> Floats:
    """The estimate around which an end of the interval lies on `bound`: the inverse."""
    n = free + 1
    square = (quantile / free) / np.maximum(1 / bound**2 + 1 - 2 / n - quantile / n, 1e-12)
    return np.asarray(np.sqrt(square))


def _first(n: Floats, power: Floats) -> int | None:
    enough = np.flatnonzero(power >= POWER)
    return int(n[enough[0]]) if enough.size else None
