"""What the client says of one request, and of itself over one window.

Invariant: planned = completed + failed + cancelled; a request that was due is never absent.
Times are integer nanoseconds: `scheduled_ns` and `sent_ns` from the start of the window, all others
from `sent_ns` of their own request.
"""

from __future__ import annotations

from dataclasses import dataclass

from records.digest import Digest
from records.errors import FormatError

OUTCOMES = ("completed", "failed", "cancelled")
STAMPS = ("kernel", "user")


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the client saw it.

    A chunk is one SSE event with content. `chunk_ns[i]` is the receive time of the read that ended
    chunk i, `chunk_tokens[i]` the tokens it carried (from `token_ids`). `merged` lists the chunks
    whose time is an upper bound, because a later chunk came in the same read. `error` is a kind
    ("" when completed), `detail` the words. `ramp`: sent while other connections were
    still idle (closed loop), or before the first request had ended (open loop).
    -1 stands for a count the server did not send and for a time of what did not happen: `sent_ns`
    of a request that never left. In a closed loop `scheduled_ns` is the end of the request before
    it on its connection. `tokens_digest`: SHA-256 over the token ids in decimal, joined by commas;
    None where a chunk came without ids. `step_accepted`: accepted draft tokens by step, as the
    server reports them for this request; empty where it does not.
    """

    index: int
    outcome: str
    ramp: bool
    scheduled_ns: int
    sent_ns: int
    first_byte_ns: int
    end_ns: int
    status: int
    chunk_ns: tuple[int, ...]
    chunk_tokens: tuple[int, ...]
    merged: tuple[int, ...]
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    finish_reason: str
    tokens_digest: Digest | None
    step_accepted: tuple[int, ...]
    error: str
    detail: str

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise FormatError(f"outcome {self.outcome!r} is none of {', '.join(OUTCOMES)}")
        if len(self.chunk_ns) != len(self.chunk_tokens):
            raise FormatError("chunk_ns and chunk_tokens differ in length")
        if (self.error == "") != (self.outcome == "completed"):
            raise FormatError("exactly the requests that did not complete have an error")


@dataclass(frozen=True, slots=True)
class ClientReport:
    """The client on itself: what it was asked, what it did, how late and how busy it was.

    Lag is user time minus kernel receive time of a read; with `stamps` "user" it is unknown and -1.
    `busiest_cpu_ppm`: CPU time over wall time of the busiest worker process, in millionths.
    `clock_step_ns`: how far CLOCK_REALTIME moved against CLOCK_MONOTONIC inside the window, the
    bound on the error of mapping the kernel's stamps. `late_send_p99_ns`: sent minus scheduled in
    open loop, or sent minus the end of the request before it in closed loop.
    """

    stamps: str
    workers: int
    planned: int
    completed: int
    failed: int
    cancelled: int
    chunks: int
    merged: int
    wall_ns: int
    lag_p50_ns: int
    lag_p99_ns: int
    lag_max_ns: int
    late_send_p99_ns: int
    busiest_cpu_ppm: int
    cpu_ns: int
    clock_step_ns: int
    received_bytes: int
    peak_rss_bytes: int

    def __post_init__(self) -> None:
        if self.stamps not in STAMPS:
            raise FormatError(f"stamps {self.stamps!r} is none of {', '.join(STAMPS)}")
        if self.planned != self.completed + self.failed + self.cancelled:
            raise FormatError(
                f"{self.planned} requests planned, but {self.completed} completed + "
                f"{self.failed} failed + {self.cancelled} cancelled"
            )
