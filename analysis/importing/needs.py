"""What each latency rule needs to know, and which of it a file of another tool lacks.

Invariant: a rule gives the same whatever stands where it needs nothing (held by a property test),
so an unknown there may be filled with anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from analysis.definitions import ChunkColumns, Definition, Sample, rules
from analysis.importing.foreign import ForeignRequest, ForeignRun

Need = Literal["output tokens", "tokens of each chunk", "scheduled time"]
_TOKENS: frozenset[Need] = frozenset({"output tokens"})
_CHUNK_TOKENS: frozenset[Need] = frozenset({"tokens of each chunk"})

# Besides the times of chunks, which all need.
NEEDS: dict[Callable[[ChunkColumns], Sample], frozenset[Need]] = {
    rules.chunk_gap: frozenset(),
    rules.gap_per_token: _CHUNK_TOKENS,
    rules.token_gap: _CHUNK_TOKENS,
    rules.decode_per_token: _TOKENS,
    rules.decode_per_token_by_tokens: _TOKENS,
    rules.decode_per_token_rounded: _TOKENS,
    rules.decode_per_token_or_error: _TOKENS,
    rules.decode_per_later_token: _CHUNK_TOKENS,
    rules.decode_per_later_token_or_n1: _CHUNK_TOKENS,
    rules.decode_per_token_of_token_chunks: _CHUNK_TOKENS,
    rules.latency_per_token: _TOKENS,
    rules.latency_per_token_by_tokens: _TOKENS,
    rules.latency_per_token_or_zero: _TOKENS,
    rules.latency_per_chunk_or_zero: _TOKENS,
    rules.first_chunk_from_sent: frozenset(),
    rules.first_chunk_from_scheduled: frozenset({"scheduled time"}),
}


def lacking(definition: Definition, run: ForeignRun) -> tuple[Need, ...]:
    """What the definition needs and the file does not say of every completed request."""
    needs = NEEDS[definition.compute]
    return tuple(sorted(need for need in needs if unsaid(need, run)))


def unsaid(need: Need, run: ForeignRun) -> int:
    """Of how many completed requests the file does not say it."""
    return sum(not _known(need, request) for request in run.completed)


def columns(run: ForeignRun) -> ChunkColumns:
    """The completed requests, each from its own sending.

    Unknown tokens are filled with zeros, unknown tokens of chunks by giving all to the last chunk:
    only for rules that do not need them.
    """
    rows = [
        (request.chunk_ns, request.chunk_tokens or _filled(request), 0, 0)
        for request in run.completed
    ]
    return ChunkColumns.of_requests(rows)


def _known(need: Need, request: ForeignRequest) -> bool:
    if need == "scheduled time":
        return False  # no tool read here writes it
    if need == "tokens of each chunk":
        return request.chunk_tokens is not None
    return request.output_tokens is not None


def _filled(request: ForeignRequest) -> tuple[int, ...]:
    if not request.chunk_ns:
        return ()
    return (*[0] * (len(request.chunk_ns) - 1), request.output_tokens or 0)
