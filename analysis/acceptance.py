"""Acceptance length from the server's counters and from the client's chunks, held together.

Invariant: the two are compared as whole numbers of accepted tokens before either is shown as a
length, so that agreement means equality and not closeness.

The identity. A request's first chunk carries the token of its prefill. Each later decoding step
yields 1 + a tokens, a accepted ones among them (a = 0 where nothing was drafted, as an n-gram
drafter that finds no match), and sends one chunk. So over all requests

    tokens - chunks = accepted - truncated,

where `truncated` counts accepted tokens that the server counted and then cut off, because the
request's limit fell inside its last step (vLLM counts before it checks for the end: v1/core/sched/
scheduler.py, update_from_output). A last chunk of m tokens can have lost at most n + 1 - m of
them, n drafted a step. Chunks that were merged by the server make no difference to tokens, but
lower the number of chunks: the identity then fails on the other side, and says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.requests import RequestColumns
from records.plan import Arm
from records.schema import Counters

Verdict = Literal["exact", "within truncation", "disagree", "not comparable", "no speculation"]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Both sides of one window. Lengths in tokens per speculative step; None where undefined.

    `server_length`: 1 + accepted / drafts. `client_length`: 1 + (tokens - chunks) / drafts, the
    same steps on both sides. `tokens_per_chunk`: over the chunks after each request's first, so
    that steps without a draft count too. `undrafted_chunks`: later chunks minus drafts.
    `per_position_ppm`: share of steps that accepted the draft's token at each position, from the
    per-request steps, empty where the server reports none.
    """

    drafts: int
    accepted_server: int
    accepted_client: int
    truncation_bound: int
    truncation_exact: bool
    undrafted_chunks: int
    server_length: float | None
    client_length: float | None
    tokens_per_chunk: float | None
    tokens_server: int
    tokens_client: int
    per_position_ppm: tuple[int, ...]
    verdict: Verdict


def drafted_tokens(arm: Arm, counters: Counters) -> int:
    """Most tokens drafted a step: by the plan, or on average by the counters; 0 without drafts."""
    config = json.loads(arm.speculative_config) if arm.speculative_config else {}
    counted = -(-counters.draft_tokens // counters.drafts) if counters.drafts > 0 else 0
    return max(int(config.get("num_speculative_tokens", 0)), counted)


def acceptance(requests: RequestColumns, counters: Counters, drafted: int) -> Acceptance:
    """Compare the counters over a window with its chunks, all requests included."""
    chunks = requests.chunks
    tokens = int(chunks.chunk_tokens.sum())
    counts = chunks.chunk_counts()
    client = tokens - chunks.chunk_tokens.size
    later = int(np.maximum(counts - 1, 0).sum())
    truncated = _truncated(requests, drafted)
    drafts, server = counters.drafts, counters.accepted_tokens
    later_tokens = tokens - int(chunks.first_chunk_tokens().sum())
    return Acceptance(
        drafts,
        server,
        client,
        truncated.tokens,
        truncated.is_exact,
        later - drafts if drafts >= 0 else 0,
        1 + server / drafts if drafts > 0 else None,
        1 + client / drafts if drafts > 0 else None,
        later_tokens / later if later else None,
        counters.generation_tokens,
        tokens,
        per_position_ppm(requests, drafted),
        _verdict(requests, server - client, truncated, drafts),
    )


def per_position_ppm(requests: RequestColumns, drafted: int) -> tuple[int, ...]:
    """Steps that accepted at least p + 1 tokens, in millionths of all steps, for p from 0."""
    steps = requests.steps
    if steps.size == 0:
        return ()
    return tuple(int(np.count_nonzero(steps > p)) * 1_000_000 // steps.size for p in range(drafted))


@dataclass(frozen=True, slots=True)
class _Truncated:
    """Accepted tokens that were cut off: at most `tokens`, exactly so where `is_exact`."""

    tokens: int
    is_exact: bool


def _truncated(requests: RequestColumns, drafted: int) -> _Truncated:
    """From the steps that the server reports, else from the room in each last chunk."""
    chunks = requests.chunks
    counts = chunks.chunk_counts()
    # Only a request that came to its end inside a later step can have lost anything.
    ended = requests.completed & (counts > 1)
    last = chunks.chunk_tokens[chunks.request_offsets[1:][ended] - 1]
    steps = np.diff(requests.step_offsets)
    reported = (steps == counts - 1)[ended]
    if reported.all():
        final = requests.steps[requests.step_offsets[1:][ended] - 1]
        return _Truncated(int((final + 1 - last).sum()), is_exact=True)
    return _Truncated(int(np.maximum(drafted + 1 - last, 0).sum()), is_exact=False)


def _verdict(requests: RequestColumns, missing: int, truncated: _Truncated, drafts: int) -> Verdict:
    if drafts <= 0:
        return "no speculation"
    if missing == 0 or (truncated.is_exact and missing == truncated.tokens):
        return "exact"
    if 0 < missing <= truncated.tokens and not truncated.is_exact:
        return "within truncation"
    if not bool(requests.completed.all()):
        # The server goes on for a step or more after a client has left; nobody counts them.
        return "not comparable"
    return "disagree"
