"""A stream cut into files of a given size, and read back from them as one.

Invariant: a part is renamed to its name when it is whole; parts of an earlier, longer stream of the
same name are removed first.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from records.digest import Digest

_BLOCK_BYTES = 1 << 20


class PartsWriter(io.RawIOBase):
    """Writes `<stem>-000`, `<stem>-001` … of `part_bytes` each, the last one shorter."""

    def __init__(self, out: Path, stem: str, part_bytes: int) -> None:
        super().__init__()
        self._out, self._stem, self._part_bytes = out, stem, part_bytes
        self._done: list[tuple[str, int, Digest]] = []
        self._file: IO[bytes] | None = None
        self._state, self._size = hashlib.sha256(), 0
        for old in out.glob(f"{stem}-[0-9]*"):
            old.unlink()

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, block: Any) -> int:
        """Write a block, into as many parts as it takes."""
        rest = memoryview(block).cast("B")
        length = len(rest)
        while rest:
            if self._file is None:
                self._file = self._partial.open("wb")
                self._state, self._size = hashlib.sha256(), 0
            room = self._part_bytes - self._size
            taken, rest = rest[:room], rest[room:]
            self._file.write(taken)
            self._state.update(taken)
            self._size += len(taken)
            if self._size == self._part_bytes:
                self._end_part()
        return length

    def finish(self) -> list[tuple[str, int, Digest]]:
        """End the last part: (name, bytes, digest) of each."""
        self._end_part()
        return self._done

    @property
    def _name(self) -> str:
        return f"{self._stem}-{len(self._done):03d}"

    @property
    def _partial(self) -> Path:
        return self._out / f"{self._name}.partial"

    def _end_part(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._partial.replace(self._out / self._name)
        self._done.append((self._name, self._size, Digest(self._state.hexdigest())))
        self._file = None


class _PartsReader(io.RawIOBase):
    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self._paths = iter(paths)
        self._file: IO[bytes] | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._file is None:
                path = next(self._paths, None)
                if path is None:
                    return 0
                self._file = path.open("rb", buffering=0)
            block = self._file.read(len(buffer))
            if block:
                buffer[: len(block)] = block
                return len(block)
            self._file.close()
            self._file = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


def open_parts(paths: Sequence[Path]) -> io.BufferedReader:
    """The parts one after the other, as one file to read from."""
    return io.BufferedReader(_PartsReader(paths), _BLOCK_BYTES)
