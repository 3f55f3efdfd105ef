"""Summaries of latency definitions over requests that come in batches.

Invariant: the numbers are those of `analysis.definitions.summarise` over all requests at once. A
definition with one value a request keeps those values; one with a value a gap or token keeps none
(analysis/streaming/selection.py), and needs the batches again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from analysis.definitions.columns import ChunkColumns
from analysis.definitions.definition import PERCENTS, Definition, Summary
from analysis.definitions.rules import Sample
from analysis.statistics.percentiles import Method, percentiles
from analysis.streaming.selection import Batch, Linear, Selection

_Rule = Callable[[ChunkColumns], Sample]
# How many values there are, and their percentiles; none of no values.
_Points = tuple[int, tuple[float, ...]]


@dataclass(slots=True)
class _Gathered:
    """What a rule gave so far: its values in `parts`, or counted in `selection`."""

    selection: Selection | None
    parts: list[Batch] = field(default_factory=list)
    weighted: bool = False
    excluded: int = 0
    errors: int = 0

    def see(self, sample: Sample) -> None:
        """Take the sample of one batch."""
        self.excluded += sample.excluded
        self.errors += sample.errors
        self.weighted = sample.weights is not None
        if self.selection is None:
            self.parts.append((sample.values_ms, sample.weights))
        else:
            self.selection.see((sample.values_ms, sample.weights))

    @property
    def linear(self) -> Linear | None:
        """The percentiles to be selected; None where none are, or values are kept."""
        if self.selection is None or self.errors or self.selection.total == 0:
            return None
        return Linear(self.selection, PERCENTS, self.weighted)

    def points(self, method: Method) -> _Points:
        """Once selections are done."""
        if self.selection is not None:
            linear = self.linear
            return self.selection.total, linear.points() if linear else ()
        values = np.concatenate([part[0] for part in self.parts])
        weights = None
        if self.weighted:
            weights = np.concatenate([part[1] for part in self.parts if part[1] is not None])
        count = int(values.size if weights is None else weights.sum())
        if count == 0 or self.errors:
            return count, ()
        return count, percentiles(values, weights, PERCENTS, method)


class Summariser:
    """Takes batches of requests with `see`, each once and in order, then gives the summaries."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self._definitions = definitions
        self._first: ChunkColumns | None = None
        self._rules: dict[_Rule, _Gathered] = {}

    def see(self, columns: ChunkColumns) -> None:
        """Take one batch. The first is only held: most windows have no other."""
        if self._rules:
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
        if not self._rules:
            self._open(streamed=False)
            self._count(self._first or ChunkColumns.of_requests([]))
        self._select(again)
        points: dict[tuple[_Rule, Method], _Points] = {}
        found = []
        for one in self._definitions:
            gathered, key = self._rules[one.compute], (one.compute, one.percentile_method)
            # Several tools share a rule: what it gives is put in order once.
            if key not in points:
                points[key] = gathered.points(one.percentile_method)
            found.append(_summary(one, gathered, *points[key]))
        return tuple(found)

    def _open(self, *, streamed: bool) -> None:
        for one in self._definitions:
            large = streamed and one.per != "request" and one.percentile_method == "linear"
            self._rules.setdefault(one.compute, _Gathered(Selection() if large else None))

    def _count(self, columns: ChunkColumns) -> None:
        for rule, gathered in self._rules.items():
            gathered.see(rule(columns))

    def _select(self, again: Callable[[], Iterable[ChunkColumns]]) -> None:
        """Pass over the batches, all selections at once, until every value is known."""
        wanted = [(rule, one.linear) for rule, one in self._rules.items()]
        open_ = [(rule, linear) for rule, linear in wanted if linear is not None]
        for _, linear in open_:
            linear.aim()
        while open_ := [(rule, one) for rule, one in open_ if not one.selection.done]:
            for columns in again():
                for rule, linear in open_:
                    sample = rule(columns)
                    linear.selection.look((sample.values_ms, sample.weights))
            for _, linear in open_:
                linear.selection.end_pass()


def _summary(one: Definition, gathered: _Gathered, count: int, found: tuple[float, ...]) -> Summary:
    points: tuple[float | None, ...] = found
    if gathered.errors:
        points = (None,) * len(PERCENTS)
    elif count == 0:
        points = (one.prints_when_empty_ms,) * len(PERCENTS)
    p5, p50, p95, p99 = points
    return Summary(one.id, p50, p95, p99, count, gathered.excluded, gathered.errors, p5)
