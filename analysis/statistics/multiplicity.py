"""Several claims tested at once: p values adjusted so that their number does not make findings.

Invariant: an adjusted p is never below the p it came from, and the order of the claims is kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.statistics.samples import Floats, sample
from records.errors import FormatError


def holm(p_values: ArrayLike) -> tuple[float, ...]:
    """Adjusted p values under which "at most alpha" bounds the chance of any false claim.

    S. Holm, Scandinavian Journal of Statistics 6 (1979) 65-70, as R's p.adjust "holm" gives them;
    it holds whatever the dependence, so also for claims that share an arm. For the claims that a
    verdict is about. FormatError without p values, or for one outside 0 to 1.
    """
    values = _checked(p_values)
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(stepped, 1.0)
    return tuple(float(p) for p in adjusted)


def benjamini_hochberg(p_values: ArrayLike) -> tuple[float, ...]:
    """Adjusted p values under which "at most q" bounds the expected share of false discoveries.

    Y. Benjamini and Y. Hochberg, Journal of the Royal Statistical Society B 57 (1995) 289-300, by
    scipy.stats.false_discovery_control; for independent or positively dependent tests. For a search
    over many comparisons, whose finds are then to be tested on other boots. Errors as in `holm`.
    """
    adjusted = stats.false_discovery_control(_checked(p_values), method="bh")
    return tuple(float(p) for p in adjusted)


def _checked(p_values: ArrayLike) -> Floats:
    values = sample(p_values, 1)
    if np.any((values < 0) | (values > 1)):
        raise FormatError("a p value is between 0 and 1")
    return values
