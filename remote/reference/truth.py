"""The truth: when each chunk was due and when it was really sent, per request.

Invariant: a stamp is CLOCK_MONOTONIC ns read just before the send() that carries the last byte of
the chunk's event (its blank line); memory is allocated and touched before the window, and a request
that finds no room is served all the same and counted in `dropped`.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from records.errors import FormatError

MAGIC = b"reference-truth 1\n"
OPEN, COMPLETE, ABORTED, FAULT = "open", "complete", "aborted", "fault"


class Entry:
    """The truth about one request; `due_ns` and `sent_ns` are filled up to `sent`."""

    __slots__ = (
        "done_ns",
        "due_ns",
        "faults",
        "received_ns",
        "request_id",
        "sent",
        "sent_ns",
        "status",
        "tokens",
    )

    def __init__(
        self,
        request_id: str,
        received_ns: int,
        tokens: Sequence[int],
        faults: Sequence[str],
        due_ns: memoryview,
        sent_ns: memoryview,
    ) -> None:
        self.request_id = request_id
        self.received_ns = received_ns
        self.tokens = tokens
        self.faults = faults
        self.due_ns = due_ns
        self.sent_ns = sent_ns
        self.sent = 0
        self.done_ns = 0
        self.status = OPEN

    def head(self) -> dict[str, Any]:
        """All but the stamps, as a JSON object."""
        return {
            "request_id": self.request_id,
            "status": self.status,
            "faults": list(self.faults),
            "received_ns": self.received_ns,
            "done_ns": self.done_ns,
            "tokens": list(self.tokens[: self.sent]),
        }


class TruthLog:
    """Preallocated stamps for `capacity` chunks and the entries that own slices of them."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.reset()

    def reset(self) -> None:
        """Forget all entries; streams still running write into memory nobody reads."""
        self.entries: list[Entry] = []
        self.dropped = 0
        self._used = 0
        self._due = _stamps(self.capacity)
        self._sent = _stamps(self.capacity)

    def open(
        self, request_id: str, received_ns: int, tokens: Sequence[int], faults: Sequence[str]
    ) -> Entry:
        """A new entry with room for one stamp a chunk."""
        start, end = self._used, self._used + len(tokens)
        if end > self.capacity:
            self.dropped += 1
            spare_due, spare_sent = _stamps(len(tokens)), _stamps(len(tokens))
            return Entry(request_id, received_ns, tokens, faults, spare_due, spare_sent)
        self._used = end
        due, sent = self._due[start:end], self._sent[start:end]
        entry = Entry(request_id, received_ns, tokens, faults, due, sent)
        self.entries.append(entry)
        return entry

    def summary(self) -> dict[str, Any]:
        """Chunks, rate and the server's own lateness (true send minus due) in integer ns."""
        late = sorted(
            sent - due
            for entry in self.entries
            for due, sent in zip(
                entry.due_ns[: entry.sent], entry.sent_ns[: entry.sent], strict=True
            )
        )
        sent = [e.sent_ns[i] for e in self.entries if e.sent for i in (0, e.sent - 1)]
        span_ns = max(sent) - min(sent) if sent else 0
        return {
            "synthetic": True,
            "requests": len(self.entries),
            "open": sum(1 for entry in self.entries if entry.status == OPEN),
            "dropped": self.dropped,
            "chunks": len(late),
            "span_ns": span_ns,
            "chunks_per_s": len(late) * 1_000_000_000 // span_ns if span_ns else 0,
            "late_p50_ns": _quantile(late, 50),
            "late_p99_ns": _quantile(late, 99),
            "late_max_ns": late[-1] if late else 0,
        }

    def lines(self) -> Iterator[bytes]:
        """One JSON line a request."""
        for entry in self.entries:
            value = entry.head() | {
                "due_ns": entry.due_ns[: entry.sent].tolist(),
                "sent_ns": entry.sent_ns[: entry.sent].tolist(),
            }
            yield json.dumps(value, separators=(",", ":")).encode() + b"\n"

    def binary(self) -> Iterator[bytes]:
        """MAGIC, then per request u32 length, JSON head, u32 n, n due, n sent (i64, all LE)."""
        yield MAGIC
        for entry in self.entries:
            head = json.dumps(entry.head(), separators=(",", ":")).encode()
            yield struct.pack("<I", len(head)) + head
            yield struct.pack("<I", entry.sent)
            for stamps in (entry.due_ns, entry.sent_ns):
                yield struct.pack(f"<{entry.sent}q", *stamps[: entry.sent])


@dataclass(frozen=True, slots=True)
class Truth:
    """One request's truth as a client reads it back."""

    request_id: str
    status: str
    faults: tuple[str, ...]
    received_ns: int
    done_ns: int
    tokens: tuple[int, ...]
    due_ns: tuple[int, ...]
    sent_ns: tuple[int, ...]


def decode(data: bytes) -> tuple[Truth, ...]:
    """The entries in an answer of GET /truth, JSON lines or binary; else FormatError."""
    try:
        if not data.startswith(MAGIC):
            return tuple(_truth(json.loads(line)) for line in data.splitlines())
        return tuple(_decode_binary(data))
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise FormatError(f"not the truth of a reference server: {error}") from error


def _decode_binary(data: bytes) -> Iterator[Truth]:
    at = len(MAGIC)
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        head = json.loads(data[at + 4 : at + 4 + size])
        at += 4 + size
        (n,) = struct.unpack_from("<I", data, at)
        stamps = struct.unpack_from(f"<{2 * n}q", data, at + 4)
        at += 4 + 16 * n
        yield _truth(head | {"due_ns": stamps[:n], "sent_ns": stamps[n:]})


def _truth(value: dict[str, Any]) -> Truth:
    names = ("faults", "tokens", "due_ns", "sent_ns")
    return Truth(**value | {name: tuple(value[name]) for name in names})


def _stamps(n: int) -> memoryview:
    if n == 0:
        return memoryview(b"").cast("q")
    # MAP_POPULATE: no page fault inside the window.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    return memoryview(mmap.mmap(-1, 8 * n, flags=flags)).cast("q")


def _quantile(values: list[int], percent: int) -> int:
    """The nearest-rank quantile of sorted values; 0 of none."""
    return values[max(0, -(-percent * len(values) // 100) - 1)] if values else 0
