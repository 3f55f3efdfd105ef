"""Requests per second that meet an objective, where the objective names its quantity.

Invariant: a request on which the quantity is undefined does not meet the objective and is counted
as undefined. That is inference-perf's rule (reportgen/base.py, calculate_goodput_metrics); vLLM
bench instead takes TPOT as 0 for n <= 1 (benchmarks/serve.py), and a request of one token passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from analysis.definitions.columns import NS_PER_MS, ChunkColumns
from records.errors import FormatError

Quantity = Literal["p95-step-gap", "tpot.n-1", "tpot.n-k1", "ntpot"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)

Floats = NDArray[np.float64]
_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Goodput:
    """What one objective gives over one window.

    `compliant_fraction` is met / requests; None without requests.
    """

    quantity: Quantity
    threshold_ms: float
    requests: int
    met: int
    undefined: int
    compliant_fraction: float | None
    per_second: float


def per_request(columns: ChunkColumns, quantity: Quantity) -> Floats:
    """The quantity of each request in ms (a gap) or ms/token; NaN where it is undefined."""
    if quantity == "p95-step-gap":
        return segment_percentiles(columns, 95.0)
    tokens = columns.output_tokens()
    if quantity == "ntpot":
        return _divide(columns.last_ns() - columns.sent_ns, tokens)
    decode_ns = columns.last_ns() - columns.first_ns()
    first = columns.first_chunk_tokens() if quantity == "tpot.n-k1" else 1
    return _divide(decode_ns, tokens - first)


def goodput(
    columns: ChunkColumns, duration_ns: int, quantity: Quantity, threshold_ms: float
) -> Goodput:
    """Goodput of one objective: quantity <= threshold, as vLLM bench compares.

    `columns` holds the completed requests of the window, `duration_ns` its length. FormatError
    when the duration is not positive.
    """
    return goodput_row(columns, duration_ns, quantity, [threshold_ms])[0]


def goodput_row(
    columns: ChunkColumns, duration_ns: int, quantity: Quantity, thresholds_ms: Sequence[float]
) -> tuple[Goodput, ...]:
    """As `goodput` for several thresholds, the quantity computed once."""
    return goodput_of(per_request(columns, quantity), duration_ns, quantity, thresholds_ms)


def goodput_of(
    values: Floats, duration_ns: int, quantity: Quantity, thresholds_ms: Sequence[float]
) -> tuple[Goodput, ...]:
    """As `goodput_row`, from what `per_request` gave: parts of a window may be put together."""
    if duration_ns <= 0:
        raise FormatError(f"a window of {duration_ns} ns has no rate")
    undefined = int(np.count_nonzero(np.isnan(values)))
    results = []
    for threshold_ms in thresholds_ms:
        met = int(np.count_nonzero(values <= threshold_ms))
        results.append(
            Goodput(
                quantity,
                threshold_ms,
                values.size,
                met,
                undefined,
                met / values.size if values.size else None,
                met / (duration_ns / _NS_PER_S),
            )
        )
    return tuple(results)


def segment_percentiles(columns: ChunkColumns, percent: float) -> Floats:
    """Percentile of the step gaps of each request, ms; NaN with fewer than two chunks.

    Linear interpolation between order statistics (Hyndman and Fan 1996, type 7): numpy's default,
    which vLLM bench uses for its percentiles (np.percentile in benchmarks/serve.py). guidellm has
    no goodput and takes the inverted CDF, which differs by at most one gap.
    """
    gaps_ns = columns.gaps_ns()
    counts = np.maximum(columns.chunk_counts() - 1, 0)
    ends = np.cumsum(counts)
    owner = np.repeat(np.arange(counts.size), counts)
    ordered = _sort_within(gaps_ns, owner)
    result = np.full(counts.size, np.nan)
    some = counts > 0
    starts = (ends - counts)[some]
    place = (counts[some] - 1) * (percent / 100)
    below = np.floor(place).astype(np.int64)
    low = ordered[starts + below]
    high = ordered[starts + np.minimum(below + 1, counts[some] - 1)]
    result[some] = (low + (high - low) * (place - below)) / NS_PER_MS
    return result


def _sort_within(values: NDArray[np.int64], owner: NDArray[np.int64]) -> NDArray[np.int64]:
    if values.size == 0:
        return values
    span = int(values.max()) + 1
    # One sort of owner * span + value is many times faster than a two-key sort; it needs the room.
    if (int(owner[-1]) + 1) * span < 2**63:
        key = owner * span + values
        key.sort()
        ordered: NDArray[np.int64] = key - owner * span
        return ordered
    return values[np.lexsort((values, owner))]


def _divide(span_ns: NDArray[np.int64], divisor: NDArray[np.int64]) -> Floats:
    values = np.full(divisor.size, np.nan)
    defined = divisor > 0
    values[defined] = span_ns[defined] / divisor[defined] / NS_PER_MS
    return values
