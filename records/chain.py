"""The hash chain: bytes in, verdict out.

Invariant: line n of `events.jsonl` begins `{"prev":"sha256:<H>","seq":<n>,"t_ns":` with H the
SHA-256 of line n-1 including its line end (64 zeros for n = 0), so that the chain is checked
without decoding a body, in this module or with sha256sum in a shell (FORMAT.md).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from records import canonical
from records.digest import Digest
from records.errors import ChainError

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
    """The next line after `state`, with its line end."""
    return (
        canonical.encode(
            {
                "prev": str(state.head),
                "seq": state.lines,
                "t_ns": t_ns,
                "type": event_type,
                "value": value,
            }
        )
        + b"\n"
    )


def extend(state: ChainState, line: bytes) -> ChainState:
    """The state after a line that `verify` has accepted or `make_line` has made."""
    head = Digest(hashlib.sha256(line).hexdigest())
    return ChainState(state.lines + 1, state.bytes + len(line), head)


def verify(
    lines: Iterable[bytes], start: ChainState = EMPTY, head: Digest | None = None
) -> ChainState:
    """Follow the chain over `lines` from `start`; BrokenLineError names the line that was changed.

    `head`, where a seal gives it, is what the last line must hash to. A changed line shows only in
    the `prev` of its successor; which of the two was changed is told by the line after them.
    """
    prev = start.head.hex
    seq = start.lines
    size = start.bytes
    sha256 = hashlib.sha256
    previous: bytes | None = None
    iterator = iter(lines)
    for line in iterator:
        if not line.startswith(b'{"prev":"sha256:%b","seq":%d,"t_ns":' % (prev.encode(), seq)):
            raise _fault(line, next(iterator, None), previous is not None, seq, prev, head)
        if line[-1] != 10:
            raise BrokenLineError(seq + 1, "torn line", "no line end", "a line end")
        previous = line
        prev = sha256(line).hexdigest()
        seq += 1
        size += len(line)
    if head is not None and prev != head.hex:
        raise BrokenLineError(
            seq, "hash of the last line", f"sha256:{prev}", f"{head} (from the seal)"
        )
    return ChainState(seq, size, Digest(prev))


def _fault(
    line: bytes,
    following: bytes | None,
    has_previous: bool,
    seq: int,
    prev: str,
    head: Digest | None,
) -> BrokenLineError:
    number = seq + 1
    match = _ENVELOPE.match(line)
    if match is None:
        shown = line[:96].decode("utf-8", "replace").rstrip("\n")
        return BrokenLineError(
            number, "not an event", repr(shown), f'{{"prev":"sha256:{prev}","seq":{seq},"t_ns":…'
        )
    if int(match[2]) != seq:
        return BrokenLineError(number, "sequence number", match[2].decode(), str(seq))
    # The chain is right in seq, so either this line's prev was changed, or the line before it.
    own = hashlib.sha256(line).hexdigest()
    if following is not None:
        after = _ENVELOPE.match(following)
        intact = after is not None and after[1].decode() == own
    else:
        intact = head is None or head.hex == own
    if intact and has_previous:
        return BrokenLineError(
            number - 1, "hash of the line", f"sha256:{prev}", f"sha256:{match[1].decode()}"
        )
    return BrokenLineError(number, "prev", f"sha256:{match[1].decode()}", f"sha256:{prev}")
