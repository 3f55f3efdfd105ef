"""Percentiles of values that come in batches, exact to the last bit, in little memory.

Invariant: the result is that of `analysis.statistics.percentiles` over all values at once; what is
held at a time does not grow with their number.

Non-negative doubles are in the order of their bit patterns read as integers (IEEE 754-2019, 5.10),
so the values at the ranks wanted are found as a radix sort would: count by the leading bits, then
look only at the values that share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    """The values at some ranks of what comes in batches.

    `see` every batch once, then `aim`; while it is not `done`, `look` at every batch again and
    `end_pass`. Then `at` tells the values.
    """

    def __init__(self) -> None:
        self._bins = np.zeros(_FIRST_BINS, dtype=np.int64)
        self._shift = _FIRST_SHIFT
        self._open: dict[int, _Target] = {}
        self._found: dict[int, float] = {}
        self._finer: dict[int, dict[int, int]] = {}
        self._kept: dict[int, list[Batch]] = {}

    def see(self, batch: Batch) -> None:
        """Count one batch of finite values from 0 up."""
        values, weights = batch
        self._bins += _counted(_first_keys(values), weights, _FIRST_BINS)

    @property
    def total(self) -> int:
        """How many values there are, each as often as it counts."""
        return int(self._bins.sum())

    def aim(self, ranks: Iterable[int]) -> None:
        """Say which ranks, from 0, are wanted."""
        upto = np.cumsum(self._bins)
        for rank in set(ranks):
            key = int(np.searchsorted(upto, rank, side="right"))
            if key == 0:
                self._found[rank] = 0.0
                continue
            before = int(upto[key - 1])
            self._open[rank] = _Target(key, rank - before, int(self._bins[key]))
        self._begin_pass()

    @property
    def done(self) -> bool:
        """Whether every value is known."""
        return not self._open

    def look(self, batch: Batch) -> None:
        """Take one batch of a further pass."""
        values, weights = batch
        first = self._shift == _FIRST_SHIFT
        keys = _first_keys(values) if first else _patterns(values) >> self._shift
        for prefix in self._kept or self._finer:
            inside = keys == prefix
            part = values[inside], None if weights is None else weights[inside]
            if self._kept:
                self._kept[prefix].append(part)
            else:
                _count_finer(self._finer[prefix], part, self._lower)

    def end_pass(self) -> None:
        """All batches were looked at once more."""
        if self._kept:
            for rank, target in self._open.items():
                self._found[rank] = _at_place(self._kept[target.prefix], target.place)
            self._open.clear()
        else:
            for target in self._open.values():
                _narrow(target, self._finer[target.prefix])
            self._shift = self._lower
            if self._shift == 0:
                for rank, target in self._open.items():
                    self._found[rank] = float(np.int64(target.prefix).view(np.float64))
                self._open.clear()
        self._begin_pass()

    def at(self, rank: int) -> float:
        """The value at a rank that was aimed at."""
        return self._found[rank]

    @property
    def _lower(self) -> int:
        return max(0, self._shift - _BITS)

    def _begin_pass(self) -> None:
        prefixes = {target.prefix for target in self._open.values()}
        few = all(target.count <= _HELD for target in self._open.values())
        self._kept = {prefix: [] for prefix in prefixes} if few else {}
        self._finer = {} if few else {prefix: {} for prefix in prefixes}


@dataclass(frozen=True, slots=True)
class Linear:
    """Percentiles between order statistics (Hyndman and Fan, type 7) by a `Selection`.

    The last step rounds as numpy does without weights, and as `percentiles` does with them.
    """

    selection: Selection
    percents: Sequence[float]
    weighted: bool

    def aim(self) -> None:
        """Once all was seen: aim at the order statistics."""
        self.selection.aim(rank for _, low, high in self._places() for rank in (low, high))

    def points(self) -> tuple[float, ...]:
        """Once the selection is done: the percentiles, in their order."""
        found = []
        for place, below, above in self._places():
            low, high = self.selection.at(below), self.selection.at(above)
            if self.weighted:
                found.append(low + (high - low) * (place - below))
            else:
                found.append(float(np.quantile([low, high], place - below)))
        return tuple(found)

    def _places(self) -> Iterator[tuple[float, int, int]]:
        last = self.selection.total - 1
        for percent in self.percents:
            place = last * (percent / 100)
            below = int(np.floor(place))
            yield place, below, min(below + 1, last)


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


def _count_finer(seen: dict[int, int], batch: Batch, lower: int) -> None:
    """Add to the counts by the bits from `lower` up."""
    values, weights = batch
    finer, index = np.unique(_patterns(values) >> lower, return_inverse=True)
    amounts = _counted(index, weights, finer.size)
    for key, amount in zip(finer.tolist(), amounts.tolist(), strict=True):
        seen[key] = seen.get(key, 0) + amount


def _narrow(target: _Target, counts: dict[int, int]) -> None:
    """Find the finer prefix in which the target's place lies."""
    for key, amount in sorted(counts.items()):
        if target.place < amount:
            target.prefix, target.count = key, amount
            return
        target.place -= amount


def _at_place(parts: Sequence[Batch], place: int) -> float:
    values = np.concatenate([part[0] for part in parts])
    order = np.argsort(values, kind="stable")
    amounts = [np.ones(v.size, dtype=np.int64) if w is None else w for v, w in parts]
    upto = np.cumsum(np.concatenate(amounts)[order])
    return float(values[order[np.searchsorted(upto, place, side="right")]])
