"""Percentiles of values with whole-number weights, equal to those of the values written out.

Invariant: a value of weight w counts exactly as w copies of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from records.errors import FormatError

# linear: Hyndman and Fan 1996 (The American Statistician 50:361), type 7, numpy's default.
# inverted_cdf: their type 1, the smallest value whose cumulated weight reaches the share asked for.
# floor_index: sorted[floor(share * n)], as MLPerf does (mlcommons/inference loadgen/results.cc); it
# differs from inverted_cdf by one place where share * n is whole.
Method = Literal["linear", "inverted_cdf", "floor_index"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Beyond it their sum could be no 64-bit number.
_MOST_WEIGHT = 2.0**62


def percentiles(
    values: Floats,
    weights: Ints | None,
    percents: Sequence[float],
    method: Method = "linear",
) -> tuple[float, ...]:
    """Percentiles (0 to 100) of `values` in their own unit; weights are counts (None: all 1).

    FormatError without a value of positive weight, or with a negative weight.
    """
    if weights is not None:
        if weights.shape != values.shape or np.any(weights < 0):
            raise FormatError("one weight, at least 0, is needed for each value")
        values, weights = values[weights > 0], weights[weights > 0]
    if values.size == 0:
        raise FormatError("no values to take a percentile of")
    if weights is None and method != "floor_index":
        return tuple(float(p) for p in np.percentile(values, list(percents), method=method))
    if weights is None:
        weights = np.ones(values.size, dtype=np.int64)
    if weights.sum(dtype=np.float64) > _MOST_WEIGHT:
        raise FormatError(
            f"weights of {weights.min()} to {weights.max()} are no counts", "kit audit"
        )
    order = np.argsort(values)
    ordered, upto = values[order], np.cumsum(weights[order])
    take = _TAKE[method]
    return tuple(take(ordered, upto, percent) for percent in percents)


def _linear(ordered: Floats, upto: Ints, percent: float) -> float:
    last = int(upto[-1]) - 1
    place = last * (percent / 100)
    below = int(np.floor(place))
    low, high = (
        float(ordered[np.searchsorted(upto, rank, side="right")])
        for rank in (below, min(below + 1, last))
    )
    return low + (high - low) * (place - below)


def _inverted_cdf(ordered: Floats, upto: Ints, percent: float) -> float:
    place = int(np.searchsorted(upto, percent / 100 * int(upto[-1]), side="left"))
    return float(ordered[min(place, ordered.size - 1)])


def _floor_index(ordered: Floats, upto: Ints, percent: float) -> float:
    rank = min(int(percent / 100 * int(upto[-1])), int(upto[-1]) - 1)
    return float(ordered[np.searchsorted(upto, rank, side="right")])


_TAKE: dict[Method, Callable[[Floats, Ints, float], float]] = {
    "linear": _linear,
    "inverted_cdf": _inverted_cdf,
    "floor_index": _floor_index,
}
