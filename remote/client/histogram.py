"""Counts of durations in buckets no wider than a 128th of their value, and percentiles of them.

Invariant: memory does not grow with the number of values; `max_ns` is exact, a percentile is at
most 1/128 above the nearest-rank one.
"""

from __future__ import annotations

from array import array

_SUB_BITS = 7
_BUCKETS = (64 - _SUB_BITS) << _SUB_BITS


class Histogram:
    """Durations in ns; negative ones, which only clock error can make, count as 0."""

    __slots__ = ("_counts", "max_ns", "total")

    def __init__(self) -> None:
        self._counts = array("q", bytes(8 * _BUCKETS))
        self.total = 0
        self.max_ns = -1

    def add(self, value_ns: int) -> None:
        """Count one value."""
        value = max(value_ns, 0)
        shift = max(value.bit_length() - _SUB_BITS - 1, 0)
        self._counts[(shift << _SUB_BITS) + (value >> shift)] += 1
        self.total += 1
        self.max_ns = max(self.max_ns, value)

    def merge(self, other: Histogram) -> None:
        """Count all of another's values, too."""
        for bucket, count in enumerate(other._counts):
            if count:
                self._counts[bucket] += count
        self.total += other.total
        self.max_ns = max(self.max_ns, other.max_ns)

    def percentile_ns(self, percent: int) -> int:
        """The nearest-rank percentile, rounded up to its bucket's end; -1 of no values."""
        rank = max(-(-percent * self.total // 100), 1)
        for bucket, count in enumerate(self._counts):
            rank -= count
            if count and rank <= 0:
                shift = max((bucket >> _SUB_BITS) - 1, 0)
                end = ((bucket - (shift << _SUB_BITS) + 1) << shift) - 1
                return min(end, self.max_ns)
        return -1
