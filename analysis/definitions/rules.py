"""The latency rules as pure functions from chunk columns to a pooled sample in ms.

Invariant: each rule does what the tool's own code does with requests of one token, one chunk or
none; a request without a value is counted as excluded, never dropped in silence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.definitions.columns import NS_PER_MS, ChunkColumns, Floats, Ints

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """What a rule pools over requests: `values_ms`, each counted `weights` times (None: once).

    `excluded` requests gave no value; `errors` counts those on which the tool itself reports an
    error, so that it would publish no result at all.
    """

    values_ms: Floats
    weights: Ints | None
    excluded: int
    errors: int = 0


def chunk_gap(columns: ChunkColumns) -> Sample:
    """t[i+1] - t[i] over the chunks of a request; fewer than two chunks give none."""
    return Sample(_ms(columns.gaps_ns()), None, _count(columns.chunk_counts() < 2))


def gap_per_token(columns: ChunkColumns) -> Sample:
    """gap / k, k times, for each chunk of k tokens after the first.

    A later chunk without tokens is skipped and its gap rolls into the next one.
    """
    counted = columns.chunk_tokens > 0
    starts = columns.request_offsets[:-1][columns.chunk_counts() > 0]
    counted[starts] = True
    kept = columns.only_chunks(counted)
    tokens = kept.chunk_tokens[1:][kept.gap_mask()]
    values = kept.gaps_ns() / tokens / NS_PER_MS
    return Sample(values, tokens, _count(kept.chunk_counts() < 2))


def token_gap(columns: ChunkColumns) -> Sample:
    """Differences of token times where every token has its chunk's time: zeros inside a chunk.

    The zeros of all requests are one value with their number as weight, or 10^8 tokens would not
    fit. One token gives no difference.
    """
    kept = columns.only_chunks(columns.chunk_tokens > 0)
    tokens = kept.output_tokens()
    gaps = _ms(kept.gaps_ns())
    zeros = int(np.sum(tokens[tokens > 0] - kept.chunk_counts()[tokens > 0]))
    values = np.append(gaps, 0.0) if zeros else gaps
    weights = np.ones(values.size, dtype=np.int64)
    if zeros:
        weights[-1] = zeros
    return Sample(values, weights, _count(tokens < 2))


def decode_per_token(columns: ChunkColumns) -> Sample:
    """(t_last - t_first) / (n - 1); needs n > 1. One chunk of n > 1 tokens counts as 0."""
    return _per_request(_decode_ns(columns), columns.output_tokens() - 1)


def decode_per_token_by_tokens(columns: ChunkColumns) -> Sample:
    """As `decode_per_token`, each request weighted by its n - 1 tokens."""
    return _per_request(_decode_ns(columns), columns.output_tokens() - 1, weighted=True)


def decode_per_token_rounded(columns: ChunkColumns) -> Sample:
    """As `decode_per_token` for two chunks or more, rounded to whole ns."""
    divisor = np.where(columns.chunk_counts() > 1, columns.output_tokens() - 1, 0)
    defined = divisor > 0
    values = np.rint(_decode_ns(columns)[defined] / divisor[defined]) / NS_PER_MS
    return Sample(values, None, _count(~defined))


def decode_per_token_or_error(columns: ChunkColumns) -> Sample:
    """As `decode_per_token`, but a request of one token or none is an error of the run."""
    sample = decode_per_token(columns)
    return Sample(sample.values_ms, None, sample.excluded, errors=sample.excluded)


def decode_per_later_token(columns: ChunkColumns) -> Sample:
    """(t_last - t_first) / (n - k1); undefined when the first chunk carries every token."""
    divisor = columns.output_tokens() - columns.first_chunk_tokens()
    return _per_request(_decode_ns(columns), divisor)


def decode_per_later_token_or_n1(columns: ChunkColumns) -> Sample:
    """(t_last - t_first) / (n - k1) for n > 1; back to n - 1 where k1 is 0 or n."""
    tokens, first = columns.output_tokens(), columns.first_chunk_tokens()
    usable = (first > 0) & (tokens - first >= 1)
    divisor = np.where(usable, tokens - first, tokens - 1)
    return _per_request(_decode_ns(columns), np.where(tokens > 1, divisor, 0))


def decode_per_token_of_token_chunks(columns: ChunkColumns) -> Sample:
    """As `decode_per_token`, first and last taken over the chunks that carry tokens."""
    return decode_per_token(columns.only_chunks(columns.chunk_tokens > 0))


def latency_per_token(columns: ChunkColumns) -> Sample:
    """(t_last - t_sent) / n; needs n > 0."""
    return _per_request(_latency_ns(columns), columns.output_tokens())


def latency_per_token_by_tokens(columns: ChunkColumns) -> Sample:
    """As `latency_per_token`, each request weighted by its n tokens."""
    return _per_request(_latency_ns(columns), columns.output_tokens(), weighted=True)


def latency_per_token_or_zero(columns: ChunkColumns) -> Sample:
    """As `latency_per_token`; a request without tokens counts as 0."""
    return _zero_filled(_latency_ns(columns), columns.output_tokens(), columns.output_tokens())


def latency_per_chunk_or_zero(columns: ChunkColumns) -> Sample:
    """(t_last - t_sent) / chunks; a request without tokens counts as 0."""
    return _zero_filled(_latency_ns(columns), columns.chunk_counts(), columns.output_tokens())


def first_chunk_from_sent(columns: ChunkColumns) -> Sample:
    """t_first - t_sent; needs a chunk."""
    return _first_since(columns, columns.sent_ns)


def first_chunk_from_scheduled(columns: ChunkColumns) -> Sample:
    """t_first - t_scheduled, so that queueing in the client counts; needs a chunk."""
    return _first_since(columns, columns.scheduled_ns)


def _decode_ns(columns: ChunkColumns) -> Ints:
    return columns.last_ns() - columns.first_ns()


def _latency_ns(columns: ChunkColumns) -> Ints:
    return columns.last_ns() - columns.sent_ns


def _first_since(columns: ChunkColumns, start_ns: Ints) -> Sample:
    some = columns.chunk_counts() > 0
    return Sample(_ms((columns.first_ns() - start_ns)[some]), None, _count(~some))


def _per_request(span_ns: Ints, divisor: Ints, *, weighted: bool = False) -> Sample:
    defined = divisor > 0
    values = span_ns[defined] / divisor[defined] / NS_PER_MS
    return Sample(values, divisor[defined] if weighted else None, _count(~defined))


def _zero_filled(span_ns: Ints, divisor: Ints, tokens: Ints) -> Sample:
    values = np.zeros(divisor.size)
    some = tokens > 0
    values[some] = span_ns[some] / divisor[some] / NS_PER_MS
    return Sample(values, None, 0)


def _ms(values_ns: Ints) -> Floats:
    return values_ns / NS_PER_MS


def _count(mask: Mask) -> int:
    return int(np.count_nonzero(mask))
