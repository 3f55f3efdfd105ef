"""Chunks of many requests as flat columns, and the quantities every latency definition is made of.

Invariant: request i owns `request_offsets[i]:request_offsets[i + 1]` of the chunk columns, its
chunk times never decrease, and nothing but `of_requests` loops over requests in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from records.errors import FormatError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NS_PER_MS = 1e6

# One request: times of its chunks (ns), their token counts, when sent and when scheduled (ns).
Request = tuple[Sequence[int], Sequence[int], int, int]


@dataclass(frozen=True, slots=True, eq=False)
class ChunkColumns:
    """Completed requests, times in integer ns of one monotonic clock.

    `request_offsets` has one entry more than there are requests. FormatError when the columns do
    not fit together, a time decreases within a request, or a token count is negative.
    """

    request_offsets: Ints
    chunk_ns: Ints
    chunk_tokens: Ints
    sent_ns: Ints
    scheduled_ns: Ints

    def __post_init__(self) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, _int_column(name, getattr(self, name)))
        offsets = self.request_offsets
        if offsets.size == 0 or offsets[0] != 0 or offsets[-1] != self.chunk_ns.size:
            raise FormatError("request offsets do not run from 0 to the number of chunks")
        if np.any(np.diff(offsets) < 0):
            raise FormatError("request offsets decrease")
        if self.chunk_tokens.size != self.chunk_ns.size:
            raise FormatError("as many token counts as chunk times are needed")
        if not self.sent_ns.size == self.scheduled_ns.size == offsets.size - 1:
            raise FormatError("as many sent and scheduled times as requests are needed")
        if np.any(self.chunk_tokens < 0):
            raise FormatError("a chunk with a negative token count")
        if np.any(self.gaps_ns() < 0):
            raise FormatError("chunk times decrease within a request")

    @classmethod
    def of_requests(cls, requests: Iterable[Request]) -> ChunkColumns:
        """Columns from single requests, each (chunk times, chunk tokens, sent, scheduled)."""
        rows = list(requests)
        sizes = [len(row[0]) for row in rows]
        if sizes != [len(row[1]) for row in rows]:
            raise FormatError("as many token counts as chunk times are needed")
        return cls(
            np.concatenate(([0], np.cumsum(np.array(sizes, dtype=np.int64)))),
            np.array([time for row in rows for time in row[0]], dtype=np.int64),
            np.array([count for row in rows for count in row[1]], dtype=np.int64),
            np.array([row[2] for row in rows], dtype=np.int64),
            np.array([row[3] for row in rows], dtype=np.int64),
        )

    @property
    def requests(self) -> int:
        """How many requests there are, those without a chunk included."""
        return int(self.request_offsets.size - 1)

    def chunk_counts(self) -> Ints:
        """Chunks of each request."""
        return np.diff(self.request_offsets)

    def output_tokens(self) -> Ints:
        """Tokens n of each request: the sum over its chunks."""
        return self._sums(self.chunk_tokens)

    def first_chunk_tokens(self) -> Ints:
        """Tokens k1 in the first chunk of each request; 0 where there is no chunk."""
        return self._pick(self.chunk_tokens, self.request_offsets[:-1])

    def first_ns(self) -> Ints:
        """Time of the first chunk of each request; 0 where there is no chunk."""
        return self._pick(self.chunk_ns, self.request_offsets[:-1])

    def last_ns(self) -> Ints:
        """Time of the last chunk of each request; 0 where there is no chunk."""
        return self._pick(self.chunk_ns, self.request_offsets[1:] - 1)

    def gaps_ns(self) -> Ints:
        """Times between neighbouring chunks of one request, request by request."""
        gaps = np.diff(self.chunk_ns)
        return gaps[self.gap_mask()]

    def gap_mask(self) -> NDArray[np.bool_]:
        """Which neighbouring pairs of the flat columns lie inside one request."""
        mask = np.ones(max(self.chunk_ns.size - 1, 0), dtype=np.bool_)
        inner = self.request_offsets[1:-1]
        mask[inner[(inner > 0) & (inner < self.chunk_ns.size)] - 1] = False
        return mask

    def only_chunks(self, keep: NDArray[np.bool_]) -> ChunkColumns:
        """The same requests with only the chunks that `keep` marks."""
        before = np.concatenate(([0], np.cumsum(keep)))
        return ChunkColumns(
            before[self.request_offsets],
            self.chunk_ns[keep],
            self.chunk_tokens[keep],
            self.sent_ns,
            self.scheduled_ns,
        )

    def _sums(self, column: Ints) -> Ints:
        # Differences of running sums, not reduceat: reduceat repeats a neighbour for empty slices.
        running = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(column)))
        return np.diff(running[self.request_offsets])

    def _pick(self, column: Ints, at: Ints) -> Ints:
        picked = np.zeros(self.requests, dtype=np.int64)
        filled = self.chunk_counts() > 0
        picked[filled] = column[at[filled]]
        return picked


def _int_column(name: str, values: ArrayLike) -> NDArray[Any]:
    column = np.asarray(values)
    if column.ndim != 1 or (column.size and not np.issubdtype(column.dtype, np.integer)):
        raise FormatError(f"{name} is not a flat column of integers")
    return column.astype(np.int64, copy=False)
