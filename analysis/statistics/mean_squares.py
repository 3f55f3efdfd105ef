"""The two mean squares of boots within hosts, from which every interval of components is made.

Invariant: for unequal numbers of boots the host mean square is that of the host means times their
harmonic mean number, which is the usual one where the numbers are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.statistics.samples import Floats
from records.errors import FormatError


@dataclass(frozen=True, slots=True)
class MeanSquares:
    """Mean squares between hosts and between boots of a host, in the squared unit of the values.

    Scalars, or arrays of equal shape for many analyses of the same design. `size`: boots a host,
    their harmonic mean where they are not equal.
    """

    host: Floats
    boot: Floats
    free_host: int
    free_boot: int
    size: float


def mean_squares(groups: Sequence[Floats]) -> MeanSquares:
    """Mean squares of hosts (arrays of boots), balanced or not.

    J. D. Thomas and R. A. Hultquist, Annals of Statistics 6 (1978) 582-587. FormatError for fewer
    than two hosts, or no host with two boots.
    """
    sizes = np.array([group.size for group in groups])
    free_host, free_boot = len(groups) - 1, int(sizes.sum()) - len(groups)
    if free_host < 1 or free_boot < 1:
        raise FormatError("two hosts are needed, and two boots on one of them")
    means = np.array([group.mean() for group in groups])
    size = len(groups) / float(np.sum(1 / sizes))
    within = sum(float(np.sum((group - group.mean()) ** 2)) for group in groups)
    return MeanSquares(
        np.asarray(size * means.var(ddof=1)),
        np.asarray(within / free_boot),
        free_host,
        free_boot,
        size,
    )


def balanced_squares(values: Floats) -> MeanSquares:
    """The same for many designs at once; the last two axes are hosts and boots of a host."""
    hosts, boots = values.shape[-2:]
    return MeanSquares(
        np.asarray(boots * values.mean(axis=-1).var(axis=-1, ddof=1)),
        np.asarray(values.var(axis=-1, ddof=1).mean(axis=-1)),
        hosts - 1,
        hosts * (boots - 1),
        float(boots),
    )
