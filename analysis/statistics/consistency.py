"""What part of a spread lies between boots, and what between windows of one boot.

Invariant: a row is one boot, a column one window of each; what the columns differ by on average is
neither, and counts for nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.statistics.samples import sample
from records.errors import FormatError

# Of the largest value: what sums of some hundred of them may lose in rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True, slots=True)
class Consistency:
    """`share`: between boots, of the variance of one window, from 0 to 1 (intraclass correlation).

    0 where the boots' means differ less than windows of one boot would make them. `within_sd`: of a
    window about its boot, in the unit of the values.
    """

    share: float
    low: float
    high: float
    within_sd: float
    confidence: float


def consistency(boots: ArrayLike, confidence: float = 0.95) -> Consistency:
    """The intraclass correlation of n boots of k windows each, with its F interval (normal data).

    K. O. McGraw and S. P. Wong, Psychological Methods 1 (1996) 30-46: ICC(C,1), tables 4 and 7; it
    is ICC(3,1) of P. E. Shrout and J. L. Fleiss, Psychological Bulletin 86 (1979) 420-428. Bounds
    below 0 are 0. `boots`: shape (n, k). FormatError for fewer than two of either, values that are
    not finite, or windows of a boot that never differ.
    """
    values = np.asarray(boots, dtype=np.float64)
    if values.ndim != 2 or min(values.shape) < 2:
        raise FormatError("one boot, or one window of each, tells nothing apart")
    sample(values.ravel(), 4)
    n, k = values.shape
    rows, columns, mean = values.mean(axis=1), values.mean(axis=0), values.mean()
    free = (n - 1) * (k - 1)
    between = k * float(np.sum((rows - mean) ** 2)) / (n - 1)
    within = float(np.sum((values - rows[:, None] - columns[None, :] + mean) ** 2)) / free
    if math.sqrt(within) <= _ROUNDING * float(np.abs(values).max()):
        raise FormatError("the windows of each boot are alike: nothing to hold the boots against")
    ratio, tail = between / within, (1 - confidence) / 2
    lower = ratio / float(stats.f.ppf(1 - tail, n - 1, free))
    upper = ratio * float(stats.f.ppf(1 - tail, free, n - 1))
    share, low, high = (max(0.0, (f - 1) / (f + k - 1)) for f in (ratio, lower, upper))
    return Consistency(share, low, high, math.sqrt(within), confidence)
