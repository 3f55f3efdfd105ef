"""What came off the wire and what was done, in one total order, written without thinking.

Invariant: what is read back is what was appended, in that order; memory is bounded by
`memory_segments` segments, all else lies in the spill file.

A segment is 1 MiB; 32 stay in memory, every further one is written out when full, in one write.
An entry costs 32 bytes beside its payload: at 330 bytes a chunk (vLLM, continuous usage) one
million chunks are 362 MB of log, of which at most 33 MiB are memory and the rest is disk.
"""

from __future__ import annotations

import errno
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from records.errors import DiskFullError

# One read may take this much; a segment with less room is full.
READ_BYTES = 1 << 16

# connection or kind, payload bytes, CLOCK_MONOTONIC ns, the kernel's struct timespec as it came
ENTRY = struct.Struct("<iIq16s")
FIELDS = struct.Struct("<iIqqq")
ENTRY_BYTES = ENTRY.size
NO_STAMP = bytes(16)

# Kinds below zero; zero and above is a read from the connection of that number.
BEGUN, SENT, FAILED, ENDED, OFFSET = -1, -2, -3, -4, -5
# Payloads. BEGUN: connection, index, due ns (-1: closed loop). SENT, ENDED: connection. FAILED: the
# connection, then kind NUL words. OFFSET: REALTIME minus MONOTONIC ns, width of the reading ns.
BEGUN_PAYLOAD = struct.Struct("<iqq")
CONNECTION_PAYLOAD = struct.Struct("<i")
OFFSET_PAYLOAD = struct.Struct("<qq")

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class LogSize:
    """How much of a log stays in memory: `memory_segments` full segments and the one being written.

    `segment_bytes` is at least two reads of 64 KiB.
    """

    segment_bytes: int
    memory_segments: int


DEFAULT_LOG_SIZE = LogSize(1 << 20, 32)


class WireLog:
    """An append-only log. The receive loop writes into `buffer` at `used` itself, for speed."""

    def __init__(self, directory: Path, size: LogSize) -> None:
        self._kept: list[tuple[bytearray, int]] = []
        # Zeroed page by page, so that no page is touched first inside the window.
        self._spare = [_touched(size.segment_bytes) for _ in range(size.memory_segments)]
        self._file: BinaryIO | None = None
        self._directory = directory
        self.full_at = size.segment_bytes - READ_BYTES - ENTRY_BYTES
        self.buffer = _touched(size.segment_bytes)
        self.view = memoryview(self.buffer)
        self.used = 0
        self.spilled_bytes = 0

    def append(self, kind: int, time_ns: int, payload: bytes = b"") -> None:
        """Append an entry that is not a read; `payload` is short."""
        if self.used > self.full_at:
            self.rotate()
        end = self.used + ENTRY_BYTES
        ENTRY.pack_into(self.buffer, self.used, kind, len(payload), time_ns, NO_STAMP)
        self.buffer[end : end + len(payload)] = payload
        self.used = end + len(payload)

    def rotate(self) -> None:
        """Put the full segment away and begin the next. DiskFullError if it cannot be written."""
        if self._spare:
            self._kept.append((self.buffer, self.used))
            self.buffer = self._spare.pop()
            self.view = memoryview(self.buffer)
        else:
            self._spill()
        self.used = 0

    def entries(self) -> Iterator[tuple[int, int, int, bytes]]:
        """Kind, CLOCK_MONOTONIC ns, kernel's CLOCK_REALTIME ns (0: none), payload; frees memory
        as it goes, so it can be read once.
        """
        while self._kept:
            yield from _entries(*self._kept.pop(0))
        if self._file is not None:
            self._file.seek(0)
            while length := self._file.read(_LENGTH.size):
                segment = self._file.read(_LENGTH.unpack(length)[0])
                yield from _entries(segment, len(segment))
        yield from _entries(self.buffer, self.used)

    def close(self) -> None:
        """Give the disk space back."""
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        try:
            if self._file is None:
                # Unnamed: nothing is left behind, however the process ends.
                self._file = tempfile.TemporaryFile(dir=self._directory, buffering=0)  # noqa: SIM115
            self._file.write(_LENGTH.pack(self.used))
            at = 0
            while at < self.used:
                at += self._file.write(self.view[at : self.used])
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise DiskFullError(
                f"no room for the client's log in {self._directory}: {error}",
                remedy="free disk space there; one million chunks need about 0.4 GB",
            ) from error
        self.spilled_bytes += self.used + _LENGTH.size


def _touched(size: int) -> bytearray:
    buffer = bytearray(size)
    buffer[::4096] = bytes(len(range(0, size, 4096)))
    return buffer


def _entries(segment: bytes | bytearray, used: int) -> Iterator[tuple[int, int, int, bytes]]:
    at = 0
    while at < used:
        kind, size, time_ns, seconds, ns = FIELDS.unpack_from(segment, at)
        at += ENTRY_BYTES
        yield kind, time_ns, seconds * 1_000_000_000 + ns, bytes(segment[at : at + size])
        at += size
