"""The journal: the one writer of `events.jsonl`.

Invariant: bytes once written are never changed; an event is on disk before `append` returns; one
process writes at a time. The only bytes ever cut are those of a torn last line, and the next event
says so, or is the one that the line began with (`drop_begun`).
"""

from __future__ import annotations

import fcntl
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from records import canonical, chain, durable, schema
from records.chain import ChainState
from records.digest import Digest
from records.errors import (
    ChainError,
    DiskFullError,
    ForeignDirectoryError,
    RunBusyError,
    UnknownRunError,
)

EVENTS_NAME = "events.jsonl"


class Journal:
    """An open journal; make one with `create` or `resume`."""

    def __init__(self, path: Path, fd: int, state: ChainState) -> None:
        self._path = path
        self._fd = fd
        self._state = state
        self._torn = False

    @classmethod
    def create(cls, path: Path) -> Journal:
        """A new journal; ForeignDirectoryError if the file exists."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            fd = os.open(path, flags, 0o644)
        except FileExistsError:
            raise ForeignDirectoryError(f"{path} exists; a journal is never overwritten") from None
        _lock(fd, path)
        durable.flush_directory(path.parent)
        return cls(path, fd, chain.EMPTY)

    @classmethod
    def resume(cls, path: Path) -> Journal:
        """Continue a journal after verifying its chain; a torn last line is cut and recorded.

        ChainError if any complete line was changed or a line is too long, RunBusyError if another
        process writes, UnknownRunError if there is no journal.
        """
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            raise UnknownRunError(f"there is no journal {path}") from None
        _lock(fd, path)
        try:
            with path.open("rb") as file:
                torn_at, torn = _torn_tail(file)
                file.seek(0)
                state = chain.verify(_complete_lines(file, torn_at))
        except ChainError as error:
            os.close(fd)
            raise ChainError(f"{path}: {error.message}", remedy="kit audit") from error
        journal = cls(path, fd, state)
        if torn:
            os.ftruncate(fd, torn_at)
            os.fsync(fd)
            journal.append(schema.JournalRepaired(len(torn), Digest.of(torn)))
        return journal

    @property
    def state(self) -> ChainState:
        """How far the journal reaches."""
        return self._state

    def append(self, event: Any, t_ns: int | None = None) -> None:
        """Write one event and wait until it is on disk. DiskFullError: all before it is intact."""
        event_type, value = schema.encode(event)
        now = time.monotonic_ns() if t_ns is None else t_ns
        line = chain.make_line(self._state, now, event_type, value)
        if self._torn:
            raise DiskFullError(
                f"{self._path} ends in a torn line since an earlier write failed",
                remedy="start the same command again: it resumes",
            )
        # After a failed write or flush nobody knows what is on disk: only `resume` may go on.
        self._torn = True
        durable.write(self._fd, line, self._path, event_type)
        self._torn = False
        self._state = chain.extend(self._state, line)

    def close(self) -> None:
        """Release the file and its lock."""
        os.close(self._fd)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def drop_begun(path: Path, event_type: str) -> bool:
    """Cut off a torn last line that began an event of this type, whose time is that before it.

    For an event that no host writes, and that is made anew. Of any other line nothing is cut, nor
    of one whose type does not show. ChainError, FormatError: the lines before do not verify.
    RunBusyError if another process writes.
    """
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    _lock(fd, path)
    try:
        with path.open("rb") as file:
            torn_at, torn = _torn_tail(file)
            if not torn:
                return False
            file.seek(0)
            state = chain.verify(_complete_lines(file, torn_at))
            file.seek(max(0, torn_at - chain.MAX_LINE_BYTES))
            whole = file.read(torn_at - file.tell())
        last = whole.removesuffix(b"\n").rpartition(b"\n")[2]
        t_ns = schema.decode(canonical.decode(last)).t_ns if last else 0
        begins = chain.make_line(state, t_ns, event_type, {}).removesuffix(b"{}}\n")
        if not torn.startswith(begins):
            return False
        os.ftruncate(fd, torn_at)
        os.fsync(fd)
    except ChainError as error:
        raise ChainError(f"{path}: {error.message}", remedy="kit audit") from error
    else:
        return True
    finally:
        os.close(fd)


def is_busy(path: Path) -> bool:
    """Whether some process holds the journal open for writing."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _lock(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise RunBusyError(
            f"another process is writing {path}", remedy="watch it with: kit status"
        ) from None


def _torn_tail(file: BinaryIO) -> tuple[int, bytes]:
    """Where the bytes after the last line end begin, and those bytes.

    BrokenLineError where they are more than any line may have: no writer leaves that.
    """
    size = file.seek(0, os.SEEK_END)
    start = size
    tail = b""
    while start > 0 and len(tail) <= chain.MAX_LINE_BYTES:
        step = min(1 << 16, start)
        start -= step
        file.seek(start)
        block = file.read(step)
        cut = block.rfind(b"\n")
        if cut >= 0:
            start += cut + 1
            tail = block[cut + 1 :] + tail
            break
        tail = block + tail
    if len(tail) > chain.MAX_LINE_BYTES:
        file.seek(0)
        deque(chain.lines_of(file), maxlen=0)  # which says how many lines there are before it
    return start, tail


def _complete_lines(file: BinaryIO, end: int) -> Iterator[bytes]:
    position = 0
    lines = chain.lines_of(file)
    while position < end:
        line = next(lines, b"")
        position += len(line)
        yield line
