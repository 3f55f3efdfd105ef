"""Requests per second that meet an objective, where the objective names its quantity.

Invariant: a request on which the quantity is undefined does not meet the objective and is counted
as undefined. That is inference-perf's rule (reportgen/base.py, calculate_goodput_metrics); vLLM
bench instead takes TPOT as 0 for n <= 1 (benchmarks/serve.py), and a request of one token passes.

A request whose quantity lies nearer to the threshold than the client's stamps are exact decides
nothing. By E (analysis/calibration.py) a percentile of gaps errs, being one of values that each err
by no more, or between two of them; a time per token errs by E over the tokens of that very request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from analysis.definitions.columns import NS_PER_MS, ChunkColumns
from records.errors import FormatError

Quantity = Literal["p95-step-gap", "tpot.n-1", "tpot.n-k1", "ntpot"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Goodput:
    """What one objective gives over one window.

    `compliant_fraction` is met / requests; None without requests. `surely`, `possibly`: the least
    and the most requests that may have met it, for all that the client's stamps tell.
    """

    quantity: Quantity
    threshold_ms: float
    requests: int
    met: int
    undefined: int
    compliant_fraction: float | None
    per_second: float
    surely: int
    possibly: int


@dataclass(frozen=True, slots=True, eq=False)
class Compliance:
    """How many requests of a part of a window meet an objective, one entry a threshold."""

    requests: int
    undefined: int
    met: Ints
    surely: Ints
    possibly: Ints

    def plus(self, other: Self) -> Compliance:
        """Of both parts, which share no request."""
        return Compliance(
            self.requests + other.requests,
            self.undefined + other.undefined,
            self.met + other.met,
            self.surely + other.surely,
            self.possibly + other.possibly,
        )


def per_request(columns: ChunkColumns, quantity: Quantity) -> Floats:
    """The quantity of each request in ms (a gap) or ms/token; NaN where it is undefined."""
    if quantity == "p95-step-gap":
        return segment_percentiles(columns, 95.0)
    sent = quantity == "ntpot"
    span_ns = columns.last_ns() - (columns.sent_ns if sent else columns.first_ns())
    return _divide(span_ns, _steps(columns, quantity))


def compliance(
    columns: ChunkColumns,
    quantity: Quantity,
    thresholds_ms: Sequence[float],
    error_ns: float = 0.0,
) -> Compliance:
    """How many of these requests meet an objective at each threshold: quantity <= threshold, as
    vLLM bench compares. `error_ns`: that of a stamp; inf where it is not known.
    """
    values = per_request(columns, quantity)
    errors = error_ns / NS_PER_MS / np.maximum(_steps(columns, quantity), 1)
    low, high = values - errors, values + errors
    met, surely, possibly = (
        np.array([np.count_nonzero(of <= at) for at in thresholds_ms], dtype=np.int64)
        for of in (values, high, low)
    )
    return Compliance(values.size, int(np.isnan(values).sum()), met, surely, possibly)


def goodput(
    columns: ChunkColumns, duration_ns: int, quantity: Quantity, threshold_ms: float
) -> Goodput:
    """Goodput of one objective.

    `columns` holds the completed requests of the window, `duration_ns` its length. FormatError
    when the duration is not positive.
    """
    return goodput_row(columns, duration_ns, quantity, [threshold_ms])[0]


def goodput_row(
    columns: ChunkColumns, duration_ns: int, quantity: Quantity, thresholds_ms: Sequence[float]
) -> tuple[Goodput, ...]:
    """As `goodput` for several thresholds, the quantity computed once."""
    return goodput_of(
        compliance(columns, quantity, thresholds_ms), duration_ns, quantity, thresholds_ms
    )


def goodput_of(
    found: Compliance, duration_ns: int, quantity: Quantity, thresholds_ms: Sequence[float]
) -> tuple[Goodput, ...]:
    """As `goodput_row`, from what was counted: parts of a window may be put together."""
    if duration_ns <= 0:
        raise FormatError(f"a window of {duration_ns} ns has no rate")
    return tuple(
        Goodput(
            quantity,
            threshold_ms,
            found.requests,
            met,
            found.undefined,
            met / found.requests if found.requests else None,
            met / (duration_ns / _NS_PER_S),
            surely,
            possibly,
        )
        for threshold_ms, met, surely, possibly in zip(
            thresholds_ms,
            found.met.tolist(),
            found.surely.tolist(),
            found.possibly.tolist(),
            strict=True,
        )
    )


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


def _sort_within(values: Ints, owner: Ints) -> Ints:
    if values.size == 0:
        return values
    span = int(values.max()) + 1
    # One sort of owner * span + value is many times faster than a two-key sort; it needs the room.
    if (int(owner[-1]) + 1) * span < 2**63:
        key = owner * span + values
        key.sort()
        ordered: Ints = key - owner * span
        return ordered
    return values[np.lexsort((values, owner))]


def _steps(columns: ChunkColumns, quantity: Quantity) -> Ints:
    """What a time of each request is divided by; 1 for a gap."""
    if quantity == "p95-step-gap":
        return np.ones(columns.requests, dtype=np.int64)
    tokens = columns.output_tokens()
    if quantity == "ntpot":
        return tokens
    return tokens - (columns.first_chunk_tokens() if quantity == "tpot.n-k1" else 1)


def _divide(span_ns: Ints, divisor: Ints) -> Floats:
    values = np.full(divisor.size, np.nan)
    defined = divisor > 0
    values[defined] = span_ns[defined] / divisor[defined] / NS_PER_MS
    return values
