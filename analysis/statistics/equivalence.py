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

from analysis.statistics.samples import Floats, sample
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
    difference, error, free = log_ratio_errors(one, two, variances)
    return _verdict(float(difference), float(error), float(free), margin, alpha)


def tost_blocks(
    first: ArrayLike, second: ArrayLike, margin: float, alpha: float = 0.05
) -> Equivalence:
    """As `tost_ratio`, of two arms that were run in the same blocks: values paired by block.

    The paired t interval of the log ratios, one a block, so that what a block does to both arms
    cancels; analysis/statistics/blocking.py tells how much that gains. FormatError for fewer than
    two blocks, unequal numbers of values, or a value not positive.
    """
    one, two = (np.log(sample(values, 2, positive=True)) for values in (first, second))
    if one.size != two.size:
        raise FormatError(f"{one.size} values cannot be paired with {two.size}: one a block each")
    ratios = one - two
    error = float(ratios.std(ddof=1)) / math.sqrt(ratios.size)
    return _verdict(float(ratios.mean()), error, ratios.size - 1.0, margin, alpha)


def log_ratio_errors(
    one: Floats, two: Floats, variances: Variances = "welch"
) -> tuple[Floats, Floats, Floats]:
    """Difference of means of log values (last axis), its standard error, degrees of freedom."""
    n_one, n_two = one.shape[-1], two.shape[-1]
    free_one, free_two = n_one - 1, n_two - 1
    difference = np.asarray(one.mean(axis=-1) - two.mean(axis=-1))
    part_one = np.asarray(one.var(axis=-1, ddof=1)) / n_one
    part_two = np.asarray(two.var(axis=-1, ddof=1)) / n_two
    both = part_one + part_two
    if variances == "pooled":
        squares = part_one * n_one * free_one + part_two * n_two * free_two
        free = free_one + free_two
        error = np.sqrt(squares / free * (1 / n_one + 1 / n_two))
        return difference, error, np.full_like(error, free)
    # In shares of the sum, as the fourth power of a tiny error underflows.
    share = np.divide(part_one, both, out=np.full_like(both, 0.5), where=both > 0)
    return difference, np.sqrt(both), 1 / (share**2 / free_one + (1 - share) ** 2 / free_two)


def tost_against(
    values: ArrayLike, reference: float, margin: float, alpha: float = 0.05
) -> Equivalence:
    """As `tost_ratio`, of one sample against a published figure that comes without its spread.

    The t interval of the mean log value. It takes the figure as exact: whatever error that has
    counts as a difference. COVERAGE.md says how the interval does under skewed boots.
    """
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
        one_sided_p(min(difference - bottom, top - difference), error, free),
        equivalent=bottom < low and high < top,
        different=low > top or high < bottom,
    )


def one_sided_p(room: float, error: float, free: float) -> float:
    """P(T > `room` / `error`), Student's t with `free` degrees; without error it is sure."""
    if error > 0:
        return float(stats.t.sf(room / error, free))
    return 0.0 if room > 0 else 1.0
