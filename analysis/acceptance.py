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
lower the number of chunks: the identity then fails on the other side, and says so. One such case is
known of vLLM 0.29.0: a request whose last chunk holds two steps comes without the list of its own.
So a request without a list, whose last chunk has more than one token, may have one step more.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.requests import RequestColumns
from records.plan import Arm
from records.schema import Counters

Verdict = Literal[
    "exact",
    "within truncation",
    "within last chunks",
    "disagree",
    "not comparable",
    "no speculation",
]


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
    per_position_ppm: tuple[int, ...]
    verdict: Verdict


def most_drafted(arm: Arm, counters: Counters) -> int:
    """Most tokens drafted a step: by the plan, or on average by the counters; 0 without drafts."""
    config = json.loads(arm.speculative_config) if arm.speculative_config else {}
    counted = -(-counters.draft_tokens // counters.drafts) if counters.drafts > 0 else 0
    return max(int(config.get("num_speculative_tokens", 0)), counted)


@dataclass(frozen=True, slots=True)
class Tally:
    """What acceptance is made of, as counts that add up over parts of a window.

    `cut_reported`: accepted tokens that the steps reported were cut off, over the requests that
    report theirs; `cut_at_most`: by the room in each last chunk, over all. `joined_at_most`: how
    many requests report none and may have two steps in their last chunk. `accepted_at`: steps that
    accepted at least p + 1 tokens, for p from 0.
    """

    tokens: int
    chunks: int
    later_chunks: int
    later_tokens: int
    cut_reported: int
    cut_at_most: int
    joined_at_most: int
    all_reported: bool
    all_completed: bool
    steps: int
    accepted_at: tuple[int, ...]

    def plus(self, other: Tally) -> Tally:
        """Both parts together."""
        return Tally(
            self.tokens + other.tokens,
            self.chunks + other.chunks,
            self.later_chunks + other.later_chunks,
            self.later_tokens + other.later_tokens,
            self.cut_reported + other.cut_reported,
            self.cut_at_most + other.cut_at_most,
            self.joined_at_most + other.joined_at_most,
            self.all_reported and other.all_reported,
            self.all_completed and other.all_completed,
            self.steps + other.steps,
            tuple(a + b for a, b in zip(self.accepted_at, other.accepted_at, strict=True)),
        )


def tally(requests: RequestColumns, drafted: int) -> Tally:
    """Count over these requests; `drafted`: most tokens drafted a step."""
    chunks = requests.chunks
    tokens = int(chunks.chunk_tokens.sum())
    counts = chunks.chunk_counts()
    # Only a request that came to its end inside a later step can have lost anything.
    ended = requests.completed & (counts > 1)
    reported = np.diff(requests.step_offsets) == counts - 1
    last = chunks.chunk_tokens[chunks.request_offsets[1:][ended] - 1]
    told = reported[ended]
    final = requests.steps[requests.step_offsets[1:][ended & reported] - 1]
    return Tally(
        tokens,
        chunks.chunk_tokens.size,
        int(np.maximum(counts - 1, 0).sum()),
        tokens - int(chunks.first_chunk_tokens().sum()),
        int((final + 1 - last[told]).sum()),
        int(np.maximum(drafted + 1 - last, 0).sum()),
        int(np.count_nonzero(last[~told] > 1)),
        bool(told.all()),
        bool(requests.completed.all()),
        requests.steps.size,
        tuple(int(np.count_nonzero(requests.steps > p)) for p in range(drafted)),
    )


def acceptance(counted: Tally, counters: Counters) -> Acceptance:
    """Compare the counters over a window with what was counted over all its requests."""
    client = counted.tokens - counted.chunks
    drafts, server = counters.drafts, counters.accepted_tokens
    exact = counted.all_reported
    truncated = counted.cut_reported if exact else counted.cut_at_most
    later = counted.later_chunks
    return Acceptance(
        drafts,
        server,
        client,
        truncated,
        exact,
        later - drafts if drafts >= 0 else 0,
        1 + server / drafts if drafts > 0 else None,
        1 + client / drafts if drafts > 0 else None,
        counted.later_tokens / later if later else None,
        _in_ppm(counted),
        _verdict(counted, server - client, truncated, drafts),
    )


def _in_ppm(counted: Tally) -> tuple[int, ...]:
    if counted.steps == 0:
        return ()
    return tuple(count * 1_000_000 // counted.steps for count in counted.accepted_at)


def _verdict(counted: Tally, missing: int, truncated: int, drafts: int) -> Verdict:
    if drafts <= 0:
        return "no speculation"
    if missing == 0 or (counted.all_reported and missing == truncated):
        return "exact"
    if 0 < missing <= truncated and not counted.all_reported:
        return "within truncation"
    if -counted.joined_at_most <= missing < 0:
        return "within last chunks"
    if not counted.all_completed:
        # The server goes on for a step or more after a client has left; nobody counts them.
        return "not comparable"
    return "disagree"
