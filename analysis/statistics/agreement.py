"""Whether two accounts of the same quantity agree: server counters against the client's chunks.

Invariant: agreement is judged on the worst pair, never on the mean, where errors cancel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.statistics.samples import sample
from records.errors import FormatError


@dataclass(frozen=True, slots=True)
class Agreement:
    """Differences of pairs, first minus second, in their unit; relative ones over the pair's mean.

    `low` and `high` are the 95 % limits of agreement, equal to the bias with a single pair.
    """

    pairs: int
    bias: float
    low: float
    high: float
    worst_relative: float
    worst_pair: int
    tolerance: float
    agree: bool


def agreement(first: ArrayLike, second: ArrayLike, tolerance: float) -> Agreement:
    """Compare pairs; they agree when no relative difference exceeds `tolerance` (a fraction).

    Limits of agreement: J. M. Bland and D. G. Altman, The Lancet 327 (1986) 307-310, bias plus and
    minus 1.96 SD of the differences. FormatError without pairs, for unequal numbers of values, or a
    negative tolerance.
    """
    one, two = sample(first, 1), sample(second, 1)
    if one.size != two.size:
        raise FormatError(f"{one.size} values cannot be paired with {two.size}")
    if tolerance < 0:
        raise FormatError(f"a tolerance of {tolerance}")
    difference = one - two
    scale = (np.abs(one) + np.abs(two)) / 2
    relative = np.divide(np.abs(difference), scale, out=np.zeros_like(scale), where=scale > 0)
    bias = float(difference.mean())
    reach = 1.96 * float(difference.std(ddof=1)) if one.size > 1 else 0.0
    worst = int(np.argmax(relative))
    return Agreement(
        one.size,
        bias,
        bias - reach,
        bias + reach,
        float(relative[worst]),
        worst,
        tolerance,
        bool(relative[worst] <= tolerance),
    )
