"""The description of one latency definition, and its summary over many requests.

Invariant: a definition pools, weights and takes percentiles as the tool that it is named after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from analysis.definitions.columns import ChunkColumns, Floats, Ints
from analysis.definitions.rules import Sample
from analysis.statistics.percentiles import Method, percentiles


@dataclass(frozen=True, slots=True)
class Definition:
    """One quantity of one tool.

    `edge` says in words what requests of one token, one chunk or none become;
    `prints_when_empty_ms` is what the tool prints when no request has a value (None: nothing).
    """

    id: str
    tool: str
    quantity: str
    rule: str
    edge: str
    unit: str
    source: str
    per: Literal["gap", "token", "request"]
    compute: Callable[[ChunkColumns], Sample]
    percentile_method: Method = "linear"
    prints_when_empty_ms: float | None = None


# Those that a summary holds, in this order.
PERCENTS = (5, 50, 95, 99)


@dataclass(frozen=True, slots=True)
class Summary:
    """Percentiles in the definition's unit; None where the tool gives no number.

    `count` is the sum of weights, `excluded` the requests without a value, `errors` those on which
    the tool reports an error (then it publishes nothing).
    """

    id: str
    p50: float | None
    p95: float | None
    p99: float | None
    count: int
    excluded: int
    errors: int
    p5: float | None = None


def pooled(definition: Definition, columns: ChunkColumns) -> tuple[Floats, Ints | None]:
    """The values in ms that the tool pools over requests, and their weights (None: all 1)."""
    sample = definition.compute(columns)
    return sample.values_ms, sample.weights


def of_request(
    definition: Definition,
    chunk_ns: Sequence[int],
    chunk_tokens: Sequence[int],
    sent_ns: int,
    scheduled_ns: int,
) -> Sample:
    """The definition over the arrays of one request: times in ns in, values in ms out."""
    row = (chunk_ns, chunk_tokens, sent_ns, scheduled_ns)
    return definition.compute(ChunkColumns.of_requests([row]))


def summarise(definition: Definition, columns: ChunkColumns) -> Summary:
    """The percentiles over the requests, by the tool's own pooling and percentile method."""
    sample = definition.compute(columns)
    count = int(sample.values_ms.size if sample.weights is None else sample.weights.sum())
    points: tuple[float | None, ...]
    if sample.errors:
        points = (None,) * len(PERCENTS)
    elif count == 0:
        points = (definition.prints_when_empty_ms,) * len(PERCENTS)
    else:
        points = percentiles(
            sample.values_ms, sample.weights, PERCENTS, definition.percentile_method
        )
    p5, p50, p95, p99 = points
    return Summary(definition.id, p50, p95, p99, count, sample.excluded, sample.errors, p5)
