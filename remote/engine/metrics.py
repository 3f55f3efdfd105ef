"""Read the counters of a vLLM 0.29.0 server from its /metrics and subtract two readings.

Invariant: counts are exact integers, summed over the server's engines; a family that the server
does not expose is None, said so field by field, and never a zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from records.errors import FormatError
from remote.engine.exposition import Sample, family
from remote.engine.exposition import parse as parse_exposition

_DRAFTS = "vllm:spec_decode_num_drafts_total"
_DRAFT_TOKENS = "vllm:spec_decode_num_draft_tokens_total"
_ACCEPTED = "vllm:spec_decode_num_accepted_tokens_total"
_PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
_GENERATION = "vllm:generation_tokens_total"
_PROMPT = "vllm:prompt_tokens_total"
_SUCCESS = "vllm:request_success_total"
_QUERIES = "vllm:prefix_cache_queries_total"
_HITS = "vllm:prefix_cache_hits_total"
_RUNNING = "vllm:num_requests_running"
_WAITING = "vllm:num_requests_waiting"
_PREEMPTIONS = "vllm:num_preemptions_total"


@dataclass(frozen=True, slots=True)
class SpecDecode:
    """Speculation so far: drafts (steps), tokens drafted, accepted, accepted at each position."""

    drafts: int
    draft_tokens: int
    accepted_tokens: int
    accepted_per_position: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """Tokens looked up in the prefix cache, and tokens found there."""

    queries: int
    hits: int


@dataclass(frozen=True, slots=True)
class Counters:
    """One reading. None: the server exposes no such family. Running and waiting are gauges."""

    spec_decode: SpecDecode | None
    generation_tokens: int
    prompt_tokens: int
    request_success: tuple[tuple[str, int], ...]
    prefix_cache: PrefixCache | None
    requests_running: int | None
    requests_waiting: int | None
    preemptions: int | None


def parse(text: bytes | str) -> Counters:
    """Read a /metrics body. FormatError: a bad line, a fraction, or a family half exposed."""
    samples = parse_exposition(text)
    return Counters(
        spec_decode=_spec_decode(samples),
        generation_tokens=_required(samples, _GENERATION),
        prompt_tokens=_required(samples, _PROMPT),
        request_success=_by_label(family(samples, _SUCCESS), "finished_reason"),
        prefix_cache=_prefix_cache(samples),
        requests_running=_total(samples, _RUNNING),
        requests_waiting=_total(samples, _WAITING),
        preemptions=_total(samples, _PREEMPTIONS),
    )


def delta(after: Counters, before: Counters) -> Counters:
    """What was counted between two readings; gauges are those of `after`.

    FormatError if a counter fell or a family came or went: then two servers were read.
    """
    return Counters(
        spec_decode=_spec_delta(after.spec_decode, before.spec_decode),
        generation_tokens=_less(after.generation_tokens, before.generation_tokens, _GENERATION),
        prompt_tokens=_less(after.prompt_tokens, before.prompt_tokens, _PROMPT),
        request_success=_success_delta(after.request_success, before.request_success),
        prefix_cache=_prefix_delta(after.prefix_cache, before.prefix_cache),
        requests_running=after.requests_running,
        requests_waiting=after.requests_waiting,
        preemptions=_optional_less(after.preemptions, before.preemptions, _PREEMPTIONS),
    )


def _total(samples: Iterable[Sample], name: str) -> int | None:
    found = family(samples, name)
    return sum(sample.integer() for sample in found) if found else None


def _required(samples: Iterable[Sample], name: str) -> int:
    total = _total(samples, name)
    if total is None:
        raise FormatError(
            f"/metrics has no {name}", remedy="is this the /metrics of a vLLM 0.29.0 server?"
        )
    return total


def _by_label(samples: Iterable[Sample], label: str) -> tuple[tuple[str, int], ...]:
    totals: dict[str, int] = {}
    for sample in samples:
        key = sample.label(label)
        totals[key] = totals.get(key, 0) + sample.integer()
    return tuple(sorted(totals.items()))


def _spec_decode(samples: tuple[Sample, ...]) -> SpecDecode | None:
    drafts = _total(samples, _DRAFTS)
    draft_tokens = _total(samples, _DRAFT_TOKENS)
    accepted = _total(samples, _ACCEPTED)
    by_position = _by_label(family(samples, _PER_POSITION), "position")
    if drafts is None and draft_tokens is None and accepted is None and not by_position:
        return None
    if drafts is None or draft_tokens is None or accepted is None or not by_position:
        raise FormatError("/metrics exposes only part of the vllm:spec_decode families")
    positions = dict(by_position)
    order = [str(i) for i in range(len(positions))]
    if set(positions) != set(order):
        raise FormatError(f"positions of {_PER_POSITION} are not 0 to n-1: {sorted(positions)}")
    return SpecDecode(drafts, draft_tokens, accepted, tuple(positions[p] for p in order))


def _prefix_cache(samples: tuple[Sample, ...]) -> PrefixCache | None:
    queries, hits = _total(samples, _QUERIES), _total(samples, _HITS)
    if queries is None and hits is None:
        return None
    if queries is None or hits is None:
        raise FormatError("/metrics exposes prefix-cache queries or hits, but not both")
    return PrefixCache(queries, hits)


def _less(after: int, before: int, name: str) -> int:
    if after < before:
        raise FormatError(
            f"{name} fell from {before} to {after}", remedy="the server was restarted in between"
        )
    return after - before


def _optional_less(after: int | None, before: int | None, name: str) -> int | None:
    if after is None and before is None:
        return None
    if after is None or before is None:
        raise _came_or_went(name)
    return _less(after, before, name)


def _spec_delta(after: SpecDecode | None, before: SpecDecode | None) -> SpecDecode | None:
    if after is None and before is None:
        return None
    if after is None or before is None:
        raise _came_or_went("vllm:spec_decode")
    if len(after.accepted_per_position) != len(before.accepted_per_position):
        raise _came_or_went(_PER_POSITION)
    positions = zip(after.accepted_per_position, before.accepted_per_position, strict=True)
    return SpecDecode(
        drafts=_less(after.drafts, before.drafts, _DRAFTS),
        draft_tokens=_less(after.draft_tokens, before.draft_tokens, _DRAFT_TOKENS),
        accepted_tokens=_less(after.accepted_tokens, before.accepted_tokens, _ACCEPTED),
        accepted_per_position=tuple(_less(a, b, _PER_POSITION) for a, b in positions),
    )


def _prefix_delta(after: PrefixCache | None, before: PrefixCache | None) -> PrefixCache | None:
    if after is None and before is None:
        return None
    if after is None or before is None:
        raise _came_or_went("vllm:prefix_cache")
    return PrefixCache(
        _less(after.queries, before.queries, _QUERIES), _less(after.hits, before.hits, _HITS)
    )


def _success_delta(
    after: tuple[tuple[str, int], ...], before: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """A reason first seen in `after` counts from zero: label values appear when they occur."""
    start = dict(before)
    gone = sorted(set(start) - {reason for reason, _ in after})
    if gone:
        raise _came_or_went(f"{_SUCCESS}{{finished_reason={gone[0]!r}}}")
    return tuple((reason, _less(count, start.get(reason, 0), _SUCCESS)) for reason, count in after)


def _came_or_went(name: str) -> FormatError:
    return FormatError(
        f"{name} is in one reading and not in the other",
        remedy="read both from the same server in the same boot",
    )
