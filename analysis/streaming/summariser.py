"""Summaries of latency definitions over requests that come in batches.

Invariant: the numbers are those of `analysis.definitions.summarise` over all requests at once. A
definition with one value a request keeps those values; one with a value a gap or token keeps none
(analysis/streaming/selection.py), and needs the batches again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from analysis.definitions.columns import ChunkColumns
from analysis.definitions.definition import Definition, Summary
from analysis.definitions.rules import Sample
from analysis.statistics.percentiles import Method, percentiles
from analysis.streaming.selection import Batch, Selection, linear

_PERCENTS = (50, 95, 99)
_Rule = Callable[[ChunkColumns], Sample]
# How many values there are, and their percentiles; none of no values.
_Points = tuple[int, tuple[float, ...]]


@dataclass(slots=True)
class _Kept:
    """What a rule gave so far. `selection`: for values that are too many to keep."""

    selection: Selection | None
    values: list[Batch] = field(default_factory=list)
    weighted: bool = False
    excluded: int = 0
    errors: int = 0

    def see(self, sample: Sample) -> None:
        self.excluded += sample.excluded
        self.errors += sample.errors
        self.weighted = sample.weights is not None
        if self.selection is None:
            self.values.append((sample.values_ms, sample.weights))
        else:
            self.selection.see((sample.values_ms, sample.weights))


class Summariser:
    """Takes batches of requests with `see`, each once and in order, then gives the summaries."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._definitions = definitions
        self._first: ChunkColumns | None = None
        self._kept: dict[_Rule, _Kept] = {}

    def see(self, columns: ChunkColumns) -> None:
        """Take one batch. The first is only held: most windows have no other."""
        if self._kept:
            self._count(columns)
        elif self._first is None:
            self._first = columns
        else:
            first, self._first = self._first, None
            self._open(streamed=True)
            self._count(first)
            self._count(columns)

    def summaries(self, again: Callable[[], Iterable[ChunkColumns]]) -> tuple[Summary, ...]:
        """One summary a definition, in their order. `again` gives the same batches anew."""
        if not self._kept:
            self._open(streamed=False)
            self._count(self._first or ChunkColumns.of_requests([]))
        points: dict[tuple[_Rule, Method], _Points] = {}
        found = []
        for one in self._definitions:
            kept = self._kept[one.compute]
            key = (one.compute, one.percentile_method)
            # Several tools share a rule: what it gives is put in order once.
            if key not in points:
                points[key] = _points(*key, kept, again)
            found.append(_summary(one, kept, *points[key]))
        return tuple(found)

    def _open(self, *, streamed: bool) -> None:
        for one in self._definitions:
            large = streamed and one.per != "request" and one.percentile_method == "linear"
            self._kept.setdefault(one.compute, _Kept(Selection() if large else None))

    def _count(self, columns: ChunkColumns) -> None:
        for rule, kept in self._kept.items():
            kept.see(rule(columns))


def _points(
    rule: _Rule, method: Method, kept: _Kept, again: Callable[[], Iterable[ChunkColumns]]
) -> _Points:
    if kept.selection is None:
        values, weights = _joined(kept.values)
        count = int(values.size if weights is None else weights.sum())
        if count == 0 or kept.errors:
            return count, ()
        return count, percentiles(values, weights, _PERCENTS, method)
    count = kept.selection.total
    if count == 0 or kept.errors:
        return count, ()

    def batches() -> Iterator[Batch]:
        for columns in again():
            sample = rule(columns)
            yield sample.values_ms, sample.weights

    return count, linear(kept.selection, _PERCENTS, weighted=kept.weighted, again=batches)


def _summary(one: Definition, kept: _Kept, count: int, found: tuple[float, ...]) -> Summary:
    points: tuple[float | None, ...] = found
    if kept.errors:
        points = (None, None, None)
    elif count == 0:
        points = (one.prints_when_empty_ms,) * 3
    return Summary(one.id, points[0], points[1], points[2], count, kept.excluded, kept.errors)


def _joined(parts: Sequence[Batch]) -> Batch:
    values = np.concatenate([part[0] for part in parts])
    weights = [part[1] for part in parts if part[1] is not None]
    return values, np.concatenate(weights) if weights else None
