"""Arms in randomised complete blocks: the ratio of two, its variance, and what the blocks gained.

Invariant: a value is one boot; row i of every arm is block i, so that each block holds every arm
once.
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

# Log ratios that differ by less differ by rounding.
_NO_ERROR = 1e-12


@dataclass(frozen=True, slots=True)
class BlockedRatio:
    """Ratio of geometric means of two arms in the same blocks.

    `variance` is that of the log ratio, and nearly that of the ratio over its square;
    `unblocked_variance` is what as many boots in random order would have given. `gain` is the
    latter over the former: 1.5 saves one boot in three, below 1 the blocks cost freedom and gave
    nothing. `correlation` is that of the two arms over blocks.
    """

    ratio: float
    low: float
    high: float
    confidence: float
    blocks: int
    variance: float
    unblocked_variance: float
    gain: float
    correlation: float


@dataclass(frozen=True, slots=True)
class BlockAnalysis:
    """Analysis of variance of a arms in b blocks, in the squared unit of the values.

    `square_unblocked` estimates the error of as many boots in random order; `relative_efficiency`
    is how many of those one boot in blocks is worth when arms are compared; `p_arms` is that of no
    difference between any arms.
    """

    arms: int
    blocks: int
    square_arms: float
    square_blocks: float
    square_error: float
    square_unblocked: float
    p_arms: float
    relative_efficiency: float


def blocked_ratio(first: ArrayLike, second: ArrayLike, confidence: float = 0.95) -> BlockedRatio:
    """Ratio of two arms from one boot of each a block, by the paired t interval of the log ratios.

    The variance of a difference under blocking is (s1^2 + s2^2 - 2 s12) / b, without it
    (s1^2 + s2^2) / b: W. G. Cochran and G. M. Cox, Experimental Designs, 2nd ed. (1957), section
    4.37, which also estimates the latter from the blocks: with two arms
    `randomised_blocks(...).relative_efficiency`, whose factor for the freedom that blocks cost is
    R. A. Fisher's. On logs, so that the two arms' own levels do not matter. FormatError for fewer
    than two blocks, unequal numbers of values, a value not positive, or log ratios that are all
    the same.
    """
    one, two = (np.log(sample(values, 2, positive=True)) for values in (first, second))
    analysed = randomised_blocks([one, two])
    differences = one - two
    variance = float(differences.var(ddof=1)) / differences.size
    reach = float(stats.t.isf((1 - confidence) / 2, differences.size - 1)) * math.sqrt(variance)
    middle = float(differences.mean())
    scale = float(one.std() * two.std())
    together = float(np.mean((one - one.mean()) * (two - two.mean())))
    return BlockedRatio(
        math.exp(middle),
        math.exp(middle - reach),
        math.exp(middle + reach),
        confidence,
        differences.size,
        variance,
        2 * analysed.square_unblocked / analysed.blocks,
        analysed.relative_efficiency,
        together / scale if scale > 0 else 0.0,
    )


def same_ratio(first: ArrayLike, second: ArrayLike) -> bool:
    """Whether two arms differ by the same ratio in every block, but for rounding.

    Such arms have a ratio and no error of it: `blocked_ratio` gives them no interval. FormatError
    as there for values that are none of two arms in blocks.
    """
    one, two = (np.log(sample(values, 1, positive=True)) for values in (first, second))
    if one.size != two.size:
        raise FormatError("two arms are needed, with one value in each block")
    return bool(np.ptp(one - two) < _NO_ERROR)


def randomised_blocks(arms: Sequence[ArrayLike]) -> BlockAnalysis:
    """Two-way analysis of variance without interaction, and the efficiency of the blocks.

    D. C. Montgomery, Design and Analysis of Experiments, 8th ed. (2013), section 4.1: the error
    that unblocked boots would have had is ((b - 1) MS_blocks + b (a - 1) MS_error) / (a b - 1), and
    the efficiency is that over MS_error, times Fisher's (f + 1) (g + 3) / ((f + 3) (g + 1)) for
    the degrees of freedom f of the error with blocks and g without. For throughput pass logarithms.
    FormatError for fewer than two arms or blocks, arms of unequal length, or no error at all.
    """
    rows = [sample(values, 2) for values in arms]
    if len(rows) < 2 or len({row.size for row in rows}) != 1:
        raise FormatError("two arms are needed, with one value in each block")
    table = np.array(rows)
    count, blocks = table.shape
    grand = float(table.mean())
    of_arms, of_blocks = table.mean(axis=1), table.mean(axis=0)
    residual = table - of_arms[:, None] - of_blocks[None, :] + grand
    free_arms, free_blocks = count - 1, blocks - 1
    free_error = free_arms * free_blocks
    square_error = float(np.sum(residual**2)) / free_error
    # What remains of values that add up exactly is rounding, not an error to divide by.
    if square_error <= (np.finfo(np.float64).eps * float(np.max(np.abs(table)))) ** 2:
        raise FormatError("the arms differ by the same in every block: no error to compare with")
    square_arms = blocks * float(np.sum((of_arms - grand) ** 2)) / free_arms
    square_blocks = count * float(np.sum((of_blocks - grand) ** 2)) / free_blocks
    of_both = free_blocks * square_blocks + blocks * free_arms * square_error
    square_unblocked = of_both / (table.size - 1)
    free_without = count * free_blocks
    fisher = (free_error + 1) * (free_without + 3) / ((free_error + 3) * (free_without + 1))
    return BlockAnalysis(
        count,
        blocks,
        square_arms,
        square_blocks,
        square_error,
        square_unblocked,
        float(stats.f.sf(square_arms / square_error, free_arms, free_error)),
        fisher * square_unblocked / square_error,
    )
