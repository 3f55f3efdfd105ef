"""Two one-sided tests: whether two sets of boots agree within a margin fixed beforehand.

Invariant: a wide interval is never called equivalent; absence of a difference is not the claim.
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

# welch: B. L. Welch, Biometrika 34 (1947) 28-35. pooled: one variance for both samples.
Variances = Literal["welch", "pooled"]


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Ratio of geometric means with its 1 - 2 alpha interval, and the verdict.

    `p` is the larger of the two one-sided p values. `equivalent`: the interval lies within
    1 - margin .. 1 + margin. `different`: it lies wholly outside of that. Neither: inconclusive.
    """

    ratio: float
    low: float
    high: float
    margin: float
    alpha: float
    p: float
    equivalent: bool
    different: bool


def tost_ratio(
    first: ArrayLike,
    second: ArrayLike,
    margin: float,
    alpha: float = 0.05,
    variances: Variances = "welch",
) -> Equivalence:
    """TOST on the log ratio of two independent samples of positive values; margin 0.05 is 5 %.

    D. J. Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987) 657-680. Welch by
    default, as two arms seldom spread alike; with few boots that costs power. The bounds 1 - margin
    and 1 + margin are not reciprocal: `second` is the reference. FormatError for fewer than two
    values a side, a value not positive, or a margin outside 0 to 1.
    """
    one, two = (np.log(sample(values, 2, positive=True)) for values in (first, second))
    difference = float(one.mean() - two.mean())
    free_one, free_two = one.size - 1, two.size - 1
    part_one, part_two = float(one.var(ddof=1)) / one.size, float(two.var(ddof=1)) / two.size
    free = float(free_one + free_two)
    if variances == "pooled":
        squares = part_one * one.size * free_one + part_two * two.size * free_two
        error = math.sqrt(squares / free * (1 / one.size + 1 / two.size))
    else:
        error = math.sqrt(part_one + part_two)
        if error > 0:
            # In shares of the sum, as the fourth power of a tiny error underflows.
            share = part_one / (part_one + part_two)
            free = 1 / (share**2 / free_one + (1 - share) ** 2 / free_two)
    return _verdict(difference, error, free, margin, alpha)


def tost_against(
    values: ArrayLike, reference: float, margin: float, alpha: float = 0.05
) -> Equivalence:
    """As `tost_ratio`, of one sample against a published figure that comes without its spread."""
    if reference <= 0:
        raise FormatError(f"a reference of {reference} has no ratio")
    logs = np.log(sample(values, 2, positive=True)) - math.log(reference)
    error = float(logs.std(ddof=1)) / math.sqrt(logs.size)
    return _verdict(float(logs.mean()), error, logs.size - 1.0, margin, alpha)


def _verdict(
    difference: float, error: float, free: float, margin: float, alpha: float
) -> Equivalence:
    if not 0 < margin < 1:
        raise FormatError(f"a margin of {margin} is not a fraction between 0 and 1")
    bottom, top = math.log1p(-margin), math.log1p(margin)
    reach = float(stats.t.ppf(1 - alpha, free)) * error
    low, high = difference - reach, difference + reach
    return Equivalence(
        math.exp(difference),
        math.exp(low),
        math.exp(high),
        margin,
        alpha,
        _p(min(difference - bottom, top - difference), error, free),
        equivalent=bottom < low and high < top,
        different=low > top or high < bottom,
    )


def _p(room: float, error: float, free: float) -> float:
    if error > 0:
        return float(stats.t.sf(room / error, free))
    return 0.0 if room > 0 else 1.0
