"""The one door through which samples enter the statistics.

Invariant: what passes is a flat float array of finite values, at least as many as asked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from records.errors import FormatError

Floats = NDArray[np.float64]


def sample(values: ArrayLike, at_least: int, *, positive: bool = False) -> Floats:
    """The values as a flat float array; FormatError when too few, not finite, or not positive."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < at_least:
        raise FormatError(f"{array.size} values where at least {at_least} are needed")
    if not np.all(np.isfinite(array)):
        raise FormatError("a value that is not finite")
    if positive and np.any(array <= 0):
        raise FormatError("a value that is not positive has no ratio")
    return array
