"""Faults on demand, each a pure change to the events or the pieces of a response.

Invariant: a fault changes what is sent or when, never what the truth log says about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from records.errors import ScheduleError
from remote.reference.wire import (
    CHUNKED,
    CLOSE,
    DONE,
    LENGTH,
    MORE,
    RESET,
    STALL,
    UNTIL_CLOSE,
    Event,
    Piece,
    Reply,
    dumps,
    events,
    head,
)

# Each kind with the default and the meaning of its one number.
KINDS: dict[str, tuple[int, str]] = {
    "stall": (3, "chunks sent before the stream never continues"),
    "reset": (3, "chunks sent before the connection is reset (RST)"),
    "truncate": (3, "chunks sent before one is cut in its middle and the connection closed"),
    "error-event": (3, "chunks sent before an error event ends the stream"),
    "invalid-json": (3, "chunks sent before one whose JSON is cut"),
    "stop": (3, "chunks sent before the end with finish_reason stop"),
    "drip": (0, "microseconds between single bytes"),
    "merge": (2, "chunks in one send"),
    "status": (500, "HTTP status answered instead"),
    "wrong-usage": (1, "tokens added to the usage"),
    "miscount": (1, "tokens added to the generation counter of /metrics"),
    "no-usage": (0, "no usage event"),
    "no-done": (0, "no [DONE]"),
    "crlf": (0, "events end their lines with CR LF"),
    "comment": (0, "a comment line before each chunk, half a gap earlier"),
    "multi-line": (0, "each event's data on two lines"),
    "content-length": (0, "a stream with content-length"),
    "connection-close": (0, "connection: close after a chunked stream"),
    "until-close": (0, "no framing: the stream ends with the connection"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault and its number, see KINDS."""

    kind: str
    number: int


def parse_fault(value: Any) -> Fault:
    """A Fault from `kind` or `kind:number`; in JSON also {"kind": ..., "number": ...}."""
    if isinstance(value, dict) and value.keys() <= {"kind", "number"}:
        kind, number = value.get("kind"), value.get("number")
    else:
        kind, _, text = str(value).partition(":")
        number = int(text) if text.isdecimal() else (text or None)
    if kind not in KINDS or not (number is None or isinstance(number, int)):
        raise ScheduleError(f"{value!r} is not a fault", f"use one of {', '.join(KINDS)}, :NUMBER")
    return Fault(str(kind), KINDS[str(kind)][0] if number is None else number)


def find(faults: Sequence[Fault], kind: str) -> Fault | None:
    """The first fault of this kind, if any."""
    return next((fault for fault in faults if fault.kind == kind), None)


def stream(reply: Reply, faults: Sequence[Fault], date: str, *, close: bool) -> Iterator[Piece]:
    """The pieces of a streamed response with its faults applied, head first."""
    if not faults:
        return _plain(reply, date, close=close)
    return _faulty(reply, faults, date, close=close)


def _plain(reply: Reply, date: str, *, close: bool) -> Iterator[Piece]:
    # The same bytes as _faulty without faults (tested); short because it runs once a chunk.
    yield Piece(0, head("200 OK", _SSE, date, CHUNKED, close=close))
    for wait_ns, data, content in events(reply):
        sent = b"%x\r\ndata: %b\n\n\r\n" % (len(data) + 8, data)
        yield Piece(wait_ns, sent, 1 if content else 0)
    yield Piece(0, b"0\r\n\r\n", 0, CLOSE if close else DONE)


def _faulty(reply: Reply, faults: Sequence[Fault], date: str, *, close: bool) -> Iterator[Piece]:
    kinds = {fault.kind for fault in faults}
    framing = CHUNKED
    if "content-length" in kinds:
        framing = LENGTH
    if "until-close" in kinds:
        framing = UNTIL_CLOSE
    close = close or framing == UNTIL_CLOSE or "connection-close" in kinds
    encoded = [_encode(event, kinds) for event in _spoil(events(reply), faults)]
    length = sum(len(data) for _, data, _ in encoded)
    pieces = _frame(encoded, head("200 OK", _SSE, date, framing, length, close=close), framing)
    pieces = _ended(pieces, CLOSE if close else DONE)
    for fault in faults:
        if fault.kind == "merge":
            pieces = _merge(pieces, max(1, fault.number))
    for fault in faults:
        if fault.kind in ("stall", "reset", "truncate"):
            pieces = _cut(pieces, fault)
    for fault in faults:
        if fault.kind == "drip":
            pieces = _drip(pieces, fault.number * 1000, 2 if framing == CHUNKED else 0)
    return pieces


_SSE = "text/event-stream; charset=utf-8"


def _spoil(source: Iterator[Event], faults: Sequence[Fault]) -> Iterator[Event]:
    broken, error = find(faults, "invalid-json"), find(faults, "error-event")
    comment = find(faults, "comment")
    chunks = 0
    for event in source:
        if not event.content:
            yield event
            continue
        if error is not None and chunks == error.number:
            problem = {"message": "synthetic failure", "type": "InternalServerError"}
            data = dumps({"error": problem | {"param": None, "code": 500}})
            yield Event(event.wait_ns, data, False)
            yield Event(0, b"[DONE]", False)
            return
        wait_ns, data, _ = event
        if broken is not None and chunks == broken.number:
            data = data[: len(data) // 2]
        if comment is not None:
            yield Event(wait_ns // 2, b"", False)
            wait_ns -= wait_ns // 2
        yield Event(wait_ns, data, True)
        chunks += 1


def _encode(event: Event, kinds: set[str]) -> Event:
    end = b"\r\n" if "crlf" in kinds else b"\n"
    if not event.data:
        return event._replace(data=b": ping" + end + end)
    lines = [event.data]
    if "multi-line" in kinds:
        at = max(event.data.find(b',"choices"'), 0)
        lines = [event.data[:at], event.data[at:]] if at else lines
    return event._replace(data=b"".join(b"data: " + line + end for line in lines) + end)


def _frame(encoded: list[Event], opening: bytes, framing: int) -> Iterator[Piece]:
    yield Piece(0, opening)
    for wait_ns, data, content in encoded:
        sent = b"%x\r\n%b\r\n" % (len(data), data) if framing == CHUNKED else data
        yield Piece(wait_ns, sent, 1 if content else 0)
    if framing == CHUNKED:
        yield Piece(0, b"0\r\n\r\n")


def _ended(pieces: Iterator[Piece], then: int) -> Iterator[Piece]:
    held = next(pieces)
    for piece in pieces:
        yield held
        held = piece
    yield held._replace(then=then)


def _merge(pieces: Iterator[Piece], n: int) -> Iterator[Piece]:
    held: list[Piece] = []
    for piece in pieces:
        if held and (not piece.chunks or len(held) == n):
            yield _joined(held)
            held = []
        if piece.chunks:
            held.append(piece)
        else:
            yield piece
    if held:
        yield _joined(held)


def _joined(held: list[Piece]) -> Piece:
    wait_ns = sum(piece.wait_ns for piece in held)
    return Piece(
        wait_ns, b"".join(p.data for p in held), sum(p.chunks for p in held), held[-1].then
    )


def _cut(pieces: Iterator[Piece], fault: Fault) -> Iterator[Piece]:
    chunks = 0
    for piece in pieces:
        if piece.chunks and chunks + piece.chunks > fault.number:
            if fault.kind == "truncate":
                yield Piece(piece.wait_ns, piece.data[: len(piece.data) // 2], 0, CLOSE)
            else:
                yield Piece(piece.wait_ns, b"", 0, RESET if fault.kind == "reset" else STALL)
            return
        chunks += piece.chunks
        yield piece


def _drip(pieces: Iterator[Piece], spacing_ns: int, trailer: int) -> Iterator[Piece]:
    for piece in pieces:
        # An event is complete with its blank line; the CRLF of the HTTP chunk comes after it.
        complete = len(piece.data) - 1 - (trailer if piece.chunks else 0)
        if not piece.data:
            yield piece
        for i in range(len(piece.data)):
            yield Piece(
                spacing_ns if i else piece.wait_ns,
                piece.data[i : i + 1],
                piece.chunks if i == complete else 0,
                piece.then if i == len(piece.data) - 1 else MORE,
            )
