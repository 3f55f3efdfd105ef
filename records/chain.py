"""The hash chain: bytes in, verdict out.

Invariant: line n of `events.jsonl` begins `{"prev":"sha256:<H>","seq":<n>,"t_ns":` with H the
SHA-256 of line n-1 including its line end (64 zeros for n = 0), so that the chain is checked
without decoding a body, in this module or with sha256sum in a shell (FORMAT.md).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import BinaryIO

from records import canonical
from records.digest import Digest
from records.errors import ChainError, FormatError

GENESIS = Digest("0" * 64)
MAX_LINE_BYTES = 8 << 20

_ENVELOPE = re.compile(rb'\{"prev":"sha256:([0-9a-f]{64})","seq":(0|[1-9][0-9]*),"t_ns":')


@dataclass(frozen=True, slots=True)
class ChainState:
    """How far a chain reaches: its length in lines and bytes, and the hash of its last line."""

    lines: int
    bytes: int
    head: Digest


EMPTY = ChainState(0, 0, GENESIS)


class BrokenLineError(ChainError):
    """A line (counted from 1) that does not fit; `got` and `want` are what was compared."""

    def __init__(self, line: int, problem: str, got: str, want: str) -> None:
        super().__init__(f"line {line}: {problem}: got {got}, want {want}")
        self.line = line
        self.got = got
        self.want = want


def make_line(state: ChainState, t_ns: int, event_type: str, value: object) -> bytes:
    """The next line after `state`, with its line end. FormatError beyond MAX_LINE_BYTES."""
    event = {
        "prev": str(state.head),
        "seq": state.lines,
        "t_ns": t_ns,
        "type": event_type,
        "value": value,
    }
    line = canonical.encode(event) + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise FormatError(f"an event of {len(line)} bytes; at most {MAX_LINE_BYTES} fit a line")
    return line


def extend(state: ChainState, line: bytes) -> ChainState:
    """The state after a line that `verify` has accepted or `make_line` has made."""
    head = Digest(hashlib.sha256(line).hexdigest())
    return ChainState(state.lines + 1, state.bytes + len(line), head)


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of an open journal, each with its end; the last may be torn and have none.

    Never more than one is held. BrokenLineError for one beyond MAX_LINE_BYTES, before it is read
    to its end: records may come from anybody.
    """
    for number in count(1):
        line = file.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise BrokenLineError(
                number, "too long", f"more than {MAX_LINE_BYTES} bytes", "at most that (FORMAT.md)"
            )
        yield line


def verify(
    lines: Iterable[bytes],
    start: ChainState = EMPTY,
    head: Digest | None = None,
    length: int | None = None,
) -> ChainState:
    """Follow the chain over `lines` from `start`; BrokenLineError names the line that was changed.

    `head` and `length`, where a seal gives them, are what the last line must hash to and how many
    lines there must be. A changed line shows only in the `prev` of its successor; which of the two
    was changed is told by the line after them. Without `head` nothing vouches for the last line:
    then it must at least be canonical JSON.
    """
    seq = start.lines
    size = start.bytes
    sha256 = hashlib.sha256
    prev = start.head.hex
    previous: bytes | None = None
    # One formatting a line: on lines of 300 bytes each further one costs a tenth of the speed.
    want = _opening(prev, seq)
    iterator = iter(lines)
    for line in iterator:
        if not line.startswith(want):
            raise _fault(line, next(iterator, None), previous, seq, prev, head)
        if line[-1] != 10:
            raise BrokenLineError(seq + 1, "torn line", "no line end", "a line end")
        previous = line
        seq += 1
        size += len(line)
        prev = sha256(line).hexdigest()
        want = _opening(prev, seq)
    if length is not None and seq != length:
        _check_form(previous, seq)
        raise BrokenLineError(
            min(seq, length) + 1, "length", f"{seq} lines", f"{length} lines (from the seal)"
        )
    if head is None:
        _check_form(previous, seq)
    elif prev != head.hex:
        raise BrokenLineError(
            seq, "hash of the last line", f"sha256:{prev}", f"{head} (from the seal)"
        )
    return ChainState(seq, size, Digest(prev))


def _opening(prev: str, seq: int) -> bytes:
    return f'{{"prev":"sha256:{prev}","seq":{seq},"t_ns":'.encode()


def _check_form(line: bytes | None, number: int) -> None:
    """A line whose hash nothing confirms may be two that lost the line end between them."""
    if line is None:
        return
    try:
        canonical.decode(line[:-1])
    except FormatError as error:
        raise BrokenLineError(number, "not an event", error.message, "canonical JSON") from error


def _fault(
    line: bytes,
    following: bytes | None,
    previous: bytes | None,
    seq: int,
    prev: str,
    head: Digest | None,
) -> BrokenLineError:
    try:
        _check_form(previous, seq)
    except BrokenLineError as error:
        return error
    number = seq + 1
    match = _ENVELOPE.match(line)
    if match is None:
        shown = line[:96].decode("utf-8", "replace").rstrip("\n")
        want = _opening(prev, seq).decode() + "…"
        return BrokenLineError(number, "not an event", repr(shown), want)
    if match[2] != b"%d" % seq:
        return BrokenLineError(number, "sequence number", match[2].decode()[:20], str(seq))
    # The sequence is right, so either this line's prev was changed, or the line before it.
    own = hashlib.sha256(line).hexdigest()
    if following is not None:
        after = _ENVELOPE.match(following)
        intact = after is not None and after[1].decode() == own
    else:
        intact = head is None or head.hex == own
    if intact and previous is not None:
        return BrokenLineError(
            number - 1, "hash of the line", f"sha256:{prev}", f"sha256:{match[1].decode()}"
        )
    return BrokenLineError(number, "prev", f"sha256:{match[1].decode()}", f"sha256:{prev}")
