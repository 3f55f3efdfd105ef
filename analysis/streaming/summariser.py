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
from analysis.definitions.definition import Definition, Summary, summarise
from analysis.definitions.rules import Sample
from analysis.statistics.percentiles import percentiles
from analysis.streaming.selection import Batch, Selection, linear

_PERCENTS = (50, 95, 99)
_Rule = Callable[[ChunkColumns], Sample]


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
            for one in self._definitions:
                streamed = one.per != "request" and one.percentile_method == "linear"
                self._kept.setdefault(one.compute, _Kept(Selection() if streamed else None))
            self._count(self._first)
            self._first = None
            self._count(columns)

    def summaries(self, again: Callable[[], Iterable[ChunkColumns]]) -> tuple[Summary, ...]:
        """One summary a definition, in their order. `again` gives the same batches anew."""
        if not self._kept:
            only = self._first or ChunkColumns.of_requests([])
            return tuple(summarise(one, only) for one in self._definitions)
        points = {rule: self._points(rule, kept, again) for rule, kept in self._kept.items()}
        return tuple(
            _summary(one, self._kept[one.compute], *points[one.compute](one))
            for one in self._definitions
        )

    def _count(self, columns: ChunkColumns) -> None:
        for rule, kept in self._kept.items():
            kept.see(rule(columns))

    def _points(
        self, rule: _Rule, kept: _Kept, again: Callable[[], Iterable[ChunkColumns]]
    ) -> Callable[[Definition], tuple[int, tuple[float, ...]]]:
        """From a definition with this rule to its count and percentiles, worked out once."""
        if kept.selection is None:
            sample = _joined(kept.values)
            return lambda one: (_total(sample), _percentiles(sample, one))
        count = kept.selection.total
        found: tuple[float, ...] = ()
        if count and not kept.errors:

            def batches() -> Iterator[Batch]:
                for columns in again():
                    sample = rule(columns)
                    yield sample.values_ms, sample.weights

            found = linear(kept.selection, _PERCENTS, weighted=kept.weighted, again=batches)
        return lambda _: (count, found)


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


def _total(sample: Batch) -> int:
    values, weights = sample
    return int(values.size if weights is None else weights.sum())


def _percentiles(sample: Batch, one: Definition) -> tuple[float, ...]:
    if _total(sample) == 0:
        return ()
    return percentiles(*sample, _PERCENTS, one.percentile_method)
