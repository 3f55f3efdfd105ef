"""Percentiles of values that come in batches, exact to the last bit, in little memory.

Invariant: the result is that of `analysis.statistics.percentiles` over all values at once; what is
held at a time does not grow with their number.

Non-negative doubles are in the order of their bit patterns read as integers (IEEE 754-2019, 5.10),
so the values at the ranks wanted are found as a radix sort would: count by the leading bits, then
look only at the values that share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Values, and how often each counts (None: once).
Batch = tuple[Floats, Ints | None]

_BITS = 14  # of the pattern a pass looks at, after the first: 16,384 counters a rank
_FIRST_SHIFT = 38  # leaves sign, exponent and 14 bits of the fraction: steps of 6e-5 of a value
_FIRST_BINS = 1 << 20
# The pattern of 2**-24, below one ns in ms: what is smaller, but for 0 itself, shares its bin.
_FIRST_BASE = int(np.float64(2.0**-24).view(np.int64)) >> _FIRST_SHIFT
# So many values are simply kept and sorted: 8 MiB a rank.
_HELD = 1 << 20


@dataclass(slots=True)
class _Target:
    """A rank on its way: `prefix`, the leading bits of its value, and its place among those."""

    prefix: int
    place: int
    count: int


class Selection:
    """The values at some ranks. `see` every batch once, then `select`."""

    def __init__(self) -> None:
        self._bins = np.zeros(_FIRST_BINS, dtype=np.int64)

    def see(self, batch: Batch) -> None:
        """Count one batch of finite values from 0 up."""
        values, weights = batch
        self._bins += _counted(_first_keys(values), weights, _FIRST_BINS)

    @property
    def total(self) -> int:
        """How many values there are, each as often as it counts."""
        return int(self._bins.sum())

    def select(
        self, ranks: Sequence[int], again: Callable[[], Iterable[Batch]]
    ) -> dict[int, float]:
        """The value at each rank from 0; `again` gives the same batches anew."""
        upto = np.cumsum(self._bins)
        targets = {}
        for rank in set(ranks):
            key = int(np.searchsorted(upto, rank, side="right"))
            before = int(upto[key - 1]) if key else 0
            targets[rank] = _Target(key, rank - before, int(self._bins[key]))
        found = {rank: 0.0 for rank, target in targets.items() if target.prefix == 0}
        open_ = {rank: target for rank, target in targets.items() if target.prefix}
        shift = _FIRST_SHIFT
        while shift and any(target.count > _HELD for target in open_.values()):
            lower = max(0, shift - _BITS)
            _narrow(open_, again(), shift, lower)
            shift = lower
        if shift == 0:
            exact = {r: np.int64(t.prefix).view(np.float64) for r, t in open_.items()}
            return found | {rank: float(value) for rank, value in exact.items()}
        return found | _held(open_, again(), shift)


def linear(
    selection: Selection,
    percents: Sequence[float],
    *,
    weighted: bool,
    again: Callable[[], Iterable[Batch]],
) -> tuple[float, ...]:
    """Percentiles between order statistics (Hyndman and Fan, type 7) of what `selection` saw.

    The last step rounds as numpy does without weights, and as `percentiles` does with them.
    """
    last = selection.total - 1
    places = [last * (percent / 100) for percent in percents]
    below = [int(np.floor(place)) for place in places]
    ranks = [rank for low in below for rank in (low, min(low + 1, last))]
    at = selection.select(ranks, again)
    points = []
    for place, rank in zip(places, below, strict=True):
        low, high = at[rank], at[min(rank + 1, last)]
        if weighted:
            points.append(low + (high - low) * (place - rank))
        else:
            points.append(float(np.quantile([low, high], place - rank)))
    return tuple(points)


def _first_keys(values: Floats) -> Ints:
    """1 to the last bin in order of value; 0 for the value 0 alone."""
    keys = (_patterns(values) >> _FIRST_SHIFT) - (_FIRST_BASE - 1)
    np.clip(keys, 1, _FIRST_BINS - 1, out=keys)
    keys[values == 0] = 0
    return keys


def _patterns(values: Floats) -> Ints:
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)


def _counted(keys: Ints, weights: Ints | None, bins: int) -> Ints:
    # bincount adds weights as doubles: whole numbers below 2**53 stay exact.
    return np.bincount(keys, weights, minlength=bins).astype(np.int64)


def _leading(values: Floats, shift: int) -> Ints:
    return _first_keys(values) if shift == _FIRST_SHIFT else _patterns(values) >> shift


def _narrow(targets: dict[int, _Target], batches: Iterable[Batch], shift: int, lower: int) -> None:
    """Look at the bits from `lower` up of the values that share a target's bits from `shift`."""
    prefixes = {target.prefix for target in targets.values()}
    # In the first pass the outermost bins hold values of several prefixes: patterns, not offsets.
    counts: dict[int, dict[int, int]] = {prefix: {} for prefix in prefixes}
    for values, weights in batches:
        keys = _leading(values, shift)
        for prefix, seen in counts.items():
            inside = keys == prefix
            finer, index = np.unique(_patterns(values[inside]) >> lower, return_inverse=True)
            amounts = _counted(index, None if weights is None else weights[inside], finer.size)
            for key, amount in zip(finer.tolist(), amounts.tolist(), strict=True):
                seen[key] = seen.get(key, 0) + amount
    for target in targets.values():
        for key, amount in sorted(counts[target.prefix].items()):
            if target.place < amount:
                target.prefix, target.count = key, amount
                break
            target.place -= amount


def _held(targets: dict[int, _Target], batches: Iterable[Batch], shift: int) -> dict[int, float]:
    """Keep the few values that share a target's leading bits, and take the one at its place."""
    kept: dict[int, list[Batch]] = {target.prefix: [] for target in targets.values()}
    for values, weights in batches:
        keys = _leading(values, shift)
        for prefix, parts in kept.items():
            inside = keys == prefix
            parts.append((values[inside], None if weights is None else weights[inside]))
    found = {}
    for rank, target in targets.items():
        parts = kept[target.prefix]
        values = np.concatenate([part[0] for part in parts])
        order = np.argsort(values, kind="stable")
        amounts = [np.ones(v.size, dtype=np.int64) if w is None else w for v, w in parts]
        upto = np.cumsum(np.concatenate(amounts)[order])
        place = int(np.searchsorted(upto, target.place, side="right"))
        found[rank] = float(values[order[place]])
    return found
