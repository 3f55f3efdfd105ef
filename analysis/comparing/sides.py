"""Two sets of boots, each within its hosts, to one difference of logs with its error.

Invariant: the unit of replication is named. Where hosts differ between the sides, and both sides
have several, it is the host: boots of one host share whatever that host does to all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.statistics.equivalence import log_ratio_errors

ByHost = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Difference:
    """First over second as a log, with standard error and degrees of freedom.

    `unit`: what was repeated, boots or hosts; `samples`: 2 where both sides spread on their own, 1
    for pairs; `note`: what the reader must know of it, or "".
    """

    difference: float
    error: float
    free: float
    unit: str
    samples: int
    note: str


def log_difference(first: ByHost, second: ByHost) -> Difference | None:
    """The difference of mean logs of positive values; None below two replicates a side.

    One host on a side: over boots (Welch). The same hosts on both sides, several: pairs of host
    means. Several and others: host means (Welch).
    """
    if len(first) > 1 and first.keys() == second.keys():
        return _paired(first, second)
    if len(first) > 1 and len(second) > 1:
        one, two = (np.array([_mean_log(v) for v in side.values()]) for side in (first, second))
        return _welch(one, two, "hosts", "")
    one, two = (np.log([v for values in side.values() for v in values]) for side in (first, second))
    if min(one.size, two.size) < 2:
        return None
    note = ""
    if first.keys() != second.keys():
        note = "with one host on a side, a difference may be that of the hosts"
    return _welch(one, two, "boots", note)


def _paired(first: ByHost, second: ByHost) -> Difference:
    pairs = np.array([_mean_log(first[host]) - _mean_log(second[host]) for host in sorted(first)])
    error = float(pairs.std(ddof=1)) / math.sqrt(pairs.size)
    return Difference(float(pairs.mean()), error, pairs.size - 1.0, "hosts", 1, "")


def _welch(
    one: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    two: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    unit: str,
    note: str,
) -> Difference:
    difference, error, free = map(float, log_ratio_errors(one, two))
    return Difference(difference, error, free, unit, 2, note)


def _mean_log(values: Sequence[float]) -> float:
    return float(np.mean(np.log(values)))
