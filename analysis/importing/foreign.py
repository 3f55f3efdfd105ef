"""What is known of the requests in a file of another tool.

Invariant: None stands for what the file does not say; times are ns on the tool's own clock from an
origin of its own, and nobody vouches for either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd

from records.digest import Digest

# What a request of another form gives, wherever reading it comes upon that.
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_MOST = 2**62  # sums of a few of them stay within 64 bits


@dataclass(frozen=True, slots=True)
class ForeignRequest:
    """One request. `chunk_ns`: receipt of its chunks from its sending.

    `error`: "" where it completed. `chunk_tokens`: tokens of each chunk; `output_tokens`: of all.
    ValueError: times that run backwards, or numbers below 0 or beyond 64 bits; so no file of
    another tool can have the definitions say something of what cannot have been.
    """

    sent_ns: int | None
    chunk_ns: tuple[int, ...]
    chunk_tokens: tuple[int, ...] | None
    output_tokens: int | None
    prompt_tokens: int | None
    error: str

    def __post_init__(self) -> None:
        counts = (*(self.chunk_tokens or ()), self.output_tokens or 0, self.prompt_tokens or 0)
        if not all(0 <= one <= _MOST for one in (*self.chunk_ns, *counts)):
            raise ValueError("a time or a count below 0 or beyond 64 bits")
        if abs(self.sent_ns or 0) > _MOST:
            raise ValueError("a time beyond 64 bits")
        if any(later < earlier for earlier, later in pairwise(self.chunk_ns)):
            raise ValueError("a chunk received before the one before it")


@dataclass(frozen=True, slots=True)
class ForeignRun:
    """A file of another tool. `left_out`: requests that the tool itself did not measure.

    `notes`: what a reader must know of how this tool makes such a file.
    """

    tool: str
    file: str
    digest: Digest
    model: str
    requests: tuple[ForeignRequest, ...]
    left_out: int
    notes: tuple[str, ...]

    @property
    def completed(self) -> tuple[ForeignRequest, ...]:
        """The requests that came to their end."""
        return tuple(request for request in self.requests if not request.error)


def requests_frame(run: ForeignRun) -> pd.DataFrame:
    """One row a request; missing values are missing (pandas.NA). Times in ns from sending."""
    rows = [_row(run, number, request) for number, request in enumerate(run.requests)]
    return pd.DataFrame(rows).convert_dtypes()


def chunks_frame(run: ForeignRun) -> pd.DataFrame:
    """One row a chunk: `received_after_ns` from sending; `tokens` missing where unknown."""
    return pd.DataFrame(list(_chunk_rows(run))).convert_dtypes()


def _row(run: ForeignRun, number: int, request: ForeignRequest) -> dict[str, Any]:
    times = request.chunk_ns
    return {
        "foreign": run.tool,
        "request": number,
        "outcome": "failed" if request.error else "completed",
        "sent_ns": request.sent_ns,
        "first_chunk_after_ns": times[0] if times else None,
        "last_chunk_after_ns": times[-1] if times else None,
        "chunks": len(times),
        "output_tokens": request.output_tokens,
        "prompt_tokens": request.prompt_tokens,
        "error": request.error or None,
    }


def _chunk_rows(run: ForeignRun) -> Iterator[dict[str, Any]]:
    for number, request in enumerate(run.requests):
        for chunk, time_ns in enumerate(request.chunk_ns):
            yield {
                "foreign": run.tool,
                "request": number,
                "chunk": chunk,
                "received_after_ns": time_ns,
                "tokens": request.chunk_tokens[chunk] if request.chunk_tokens else None,
            }
