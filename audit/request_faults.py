"""What cannot be true of one recorded request, whatever was measured.

Invariant: a rule here follows from how records are defined (records/measurement.py), never from how
fast or slow anything was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from records.measurement import Request

_OK = 200  # RFC 9110, 15.3.1
FaultKind = Literal["usage", "time", "outcome"]


@dataclass(frozen=True, slots=True)
class RequestFault:
    """One contradiction inside a request, and the journal's line (from 1) that holds it."""

    line: int
    kind: FaultKind
    index: int
    got: str
    want: str


def faults(line: int, request: Request, received: int) -> Iterator[RequestFault]:
    """The contradictions of a request that received `received` tokens."""
    if request.outcome == "completed" and request.completion_tokens not in (-1, received):
        yield RequestFault(
            line,
            "usage",
            request.index,
            f"usage says {request.completion_tokens} tokens",
            f"{received} (from its chunks)",
        )
    if request.outcome == "completed" and (request.status != _OK or request.error):
        got = f"status {request.status}, error {request.error or 'none'}"
        yield RequestFault(
            line, "outcome", request.index, got, "a completed request: 200, no error"
        )
    # Nearly all are in order; names are given to moments only where they are not.
    moments = (max(request.first_byte_ns, 0), *request.chunk_ns, max(request.end_ns, 0))
    late = 0 <= request.sent_ns < request.scheduled_ns
    if not late and request.end_ns >= 0 and sorted(moments) == list(moments):
        return
    times = _times(request)
    for (before, earlier), (after, later) in pairwise(times):
        if later < earlier:
            yield RequestFault(
                line,
                "time",
                request.index,
                f"{after} {later} ns",
                f"{before} {earlier} ns or later",
            )
            return


def _times(request: Request) -> list[tuple[str, int]]:
    """Moments that must not fall, from the sending; what did not happen (-1) is left out."""
    sent = [("scheduled", request.scheduled_ns - request.sent_ns)] if request.sent_ns >= 0 else []
    moments = [
        *sent,
        ("sent", 0),
        ("first byte", request.first_byte_ns),
        *((f"chunk {i}", ns) for i, ns in enumerate(request.chunk_ns)),
        ("end", request.end_ns),
    ]
    absent = {"first byte", "end"}  # -1 there: it did not happen
    return [(name, ns) for name, ns in moments if ns >= 0 or name not in absent]
