"""The requests of one window as flat columns: one row a request, one entry a chunk.

Invariant: every request is there, whatever became of it; masks say which ones a quantity may use.
Times are ns from the start of the window.

Ramp requests (closed loop: sent while other connections were still idle; open loop: sent before
the first request ended) stay in throughput and goodput, whose
numerator and wall time must cover the same interval, and in the comparison with the server's
counters, which count them too. They are left out of latency quantities, since the load that they
met is not the load that the window is named after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.definitions.columns import ChunkColumns
from records.digest import Digest
from records.errors import FormatError
from records.measurement import OUTCOMES, Request

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

SCALARS = (
    "index",
    "scheduled_ns",
    "sent_ns",
    "first_byte_ns",
    "end_ns",
    "status",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
)
_KEYS = frozenset(Request.__dataclass_fields__)


@dataclass(frozen=True, slots=True, eq=False)
class RequestColumns:
    """`scalars` holds the integer fields of `Request` by name; `outcome` indexes OUTCOMES.

    `steps`: accepted draft tokens by step, flat, request i owning
    `step_offsets[i]:step_offsets[i + 1]`. `merged`: how many of a request's chunks have an upper
    bound for a time; `merged_at`: which, by place in their request, flat in the same way.
    `tokens_digest`: SHA-256 over the answer's token ids, b"" where a chunk came without ids.
    """

    scalars: dict[str, Ints]
    outcome: Ints
    ramp: Mask
    merged: Ints
    finish_reason: tuple[str, ...]
    error: tuple[str, ...]
    chunks: ChunkColumns
    steps: Ints
    step_offsets: Ints
    merged_at: Ints
    tokens_digest: tuple[bytes, ...]

    def __len__(self) -> int:
        return self.chunks.requests

    @property
    def completed(self) -> Mask:
        """Which requests came to their end."""
        mask: Mask = self.outcome == OUTCOMES.index("completed")
        return mask

    @property
    def for_latency(self) -> ChunkColumns:
        """Chunks of the completed requests that were not part of the ramp."""
        return self.select(self.completed & ~self.ramp)

    @property
    def for_goodput(self) -> ChunkColumns:
        """Chunks of the completed requests, ramp included."""
        return self.select(self.completed)

    def select(self, keep: Mask) -> ChunkColumns:
        """The chunks of the requests that `keep` marks."""
        columns = self.chunks
        counts = columns.chunk_counts()
        inside = np.repeat(keep, counts)
        return ChunkColumns(
            np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts[keep]))),
            columns.chunk_ns[inside],
            columns.chunk_tokens[inside],
            columns.sent_ns[keep],
            columns.scheduled_ns[keep],
        )


def put_together(parts: list[RequestColumns]) -> RequestColumns:
    """The requests of all parts, in their order."""
    if len(parts) == 1:
        return parts[0]
    chunks = [part.chunks for part in parts]
    scalars = {name: joined_ints([part.scalars[name] for part in parts]) for name in SCALARS}
    return RequestColumns(
        scalars,
        joined_ints([part.outcome for part in parts]),
        np.concatenate([np.zeros(0, dtype=np.bool_), *[part.ramp for part in parts]]),
        joined_ints([part.merged for part in parts]),
        tuple(text for part in parts for text in part.finish_reason),
        tuple(text for part in parts for text in part.error),
        ChunkColumns(
            _stacked([one.request_offsets for one in chunks]),
            joined_ints([one.chunk_ns for one in chunks]),
            joined_ints([one.chunk_tokens for one in chunks]),
            scalars["sent_ns"],
            scalars["scheduled_ns"],
        ),
        joined_ints([part.steps for part in parts]),
        _stacked([part.step_offsets for part in parts]),
        joined_ints([part.merged_at for part in parts]),
        tuple(digest for part in parts for digest in part.tokens_digest),
    )


class RequestGatherer:
    """Gathers batches of plain request objects into columns; `chunks`: how many so far."""

    def __init__(self) -> None:
        self._scalars: dict[str, list[int]] = {name: [] for name in SCALARS}
        self._outcome: list[int] = []
        self._ramp: list[bool] = []
        self._merged: list[int] = []
        self._finish: list[str] = []
        self._error: list[str] = []
        self._digests: list[bytes] = []
        self._chunk_counts: list[int] = []
        self._step_counts: list[int] = []
        self._ns: list[Ints] = []
        self._tokens: list[Ints] = []
        self._steps: list[Ints] = []
        self._merged_at: list[Ints] = []
        self.chunks = 0

    def __len__(self) -> int:
        return len(self._outcome)

    def add(self, requests: list[dict[str, Any]]) -> None:
        """Take one batch. FormatError: a request without exactly the known keys, or no digest."""
        for request in requests:
            if request.keys() != _KEYS:
                wrong = ", ".join(sorted(request.keys() ^ _KEYS))
                raise FormatError(f"a request with missing or unknown keys: {wrong}")
            for name, values in self._scalars.items():
                values.append(request[name])
            self._outcome.append(OUTCOMES.index(request["outcome"]))
            self._ramp.append(request["ramp"])
            self._merged.append(len(request["merged"]))
            self._finish.append(request["finish_reason"])
            self._error.append(request["error"])
            self._digests.append(_digest(request["tokens_digest"]))
            self._chunk_counts.append(len(request["chunk_ns"]))
            self.chunks += len(request["chunk_ns"])
            self._step_counts.append(len(request["step_accepted"]))
        # One flat array a batch, not one object a number: a window may hold 10^8 chunks.
        self._ns.append(_flat([_since_window(r) for r in requests]))
        self._tokens.append(_flat([r["chunk_tokens"] for r in requests]))
        self._steps.append(_flat([r["step_accepted"] for r in requests]))
        self._merged_at.append(_flat([r["merged"] for r in requests]))

    def columns(self) -> RequestColumns:
        """Everything gathered, in order of index."""
        scalars = {name: np.array(v, dtype=np.int64) for name, v in self._scalars.items()}
        chunks = ChunkColumns(
            _offsets(self._chunk_counts),
            joined_ints(self._ns),
            joined_ints(self._tokens),
            scalars["sent_ns"],
            scalars["scheduled_ns"],
        )
        return RequestColumns(
            scalars,
            np.array(self._outcome, dtype=np.int64),
            np.array(self._ramp, dtype=np.bool_),
            np.array(self._merged, dtype=np.int64),
            tuple(self._finish),
            tuple(self._error),
            chunks,
            joined_ints(self._steps),
            _offsets(self._step_counts),
            joined_ints(self._merged_at),
            tuple(self._digests),
        )


def _digest(text: str | None) -> bytes:
    return b"" if text is None else bytes.fromhex(Digest.parse(text).hex)


def _since_window(request: dict[str, Any]) -> Ints:
    return np.array(request["chunk_ns"], dtype=np.int64) + int(request["sent_ns"])


def _flat(parts: list[Any]) -> Ints:
    if not parts:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts])


def joined_ints(parts: list[Ints]) -> Ints:
    """One column of several; an empty one of none."""
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _stacked(offsets: list[Ints]) -> Ints:
    counts = joined_ints([np.diff(one) for one in offsets])
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))


def _offsets(counts: list[int]) -> Ints:
    return np.concatenate(
        (np.zeros(1, dtype=np.int64), np.cumsum(np.array(counts, dtype=np.int64)))
    )
