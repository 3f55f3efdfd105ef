"""Files as one tar stream, cut into parts: the same files give the same bytes, anywhere.

Invariant: files in the order given, with fixed time, owner and mode; one whose bytes are not the
announced ones ends the cutting with an error and leaves no manifest behind.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from records.bundle import Content, Part
from records.digest import Digest
from records.errors import PlanError, ProvisionError

_BLOCK_BYTES = 1 << 20
_RECORD_BYTES = 512
_UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20,
          "GiB": 1 << 30}  # fmt: skip
_LEAST_BYTES = 1000

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Packed:
    """A file that goes into the stream: what the manifest says of it, and where it lies here."""

    content: Content
    source: Path


def parse_size(text: str) -> int:
    """Bytes of a size such as 62.5MB or 60MiB. PlanError where it is none, or below 1 kB."""
    match = re.fullmatch(r"(\d{1,12})(?:\.(\d{1,9}))?\s?([A-Za-z]*)", text.strip())
    if match is None or match[3] not in _UNITS:
        raise PlanError(f"not a size: {text!r}", "write it as in 62.5MB or 60MiB")
    fraction = match[2] or ""
    size: int = int(match[1] + fraction) * _UNITS[match[3]] // 10 ** len(fraction)
    if size < _LEAST_BYTES:
        raise PlanError(f"{text!r} is too small for a part", "write it as in 62.5MB or 60MiB")
    return size


def cut(packed: Sequence[Packed], part_bytes: int, out: Path, say: Say) -> tuple[Part, ...]:
    """Write the parts into `out`. ProvisionError: a file differs from what was announced."""
    cutter = _Cutter(out, part_bytes, say)
    try:
        for block in _stream(packed):
            cutter.write(block)
        cutter.end_part()
    finally:
        cutter.close()
    return tuple(cutter.parts)


class _Cutter:
    """Writes a stream into files of `part_bytes` each, the last one shorter."""

    def __init__(self, out: Path, part_bytes: int, say: Say) -> None:
        self.parts: list[Part] = []
        self._out, self._part_bytes, self._say = out, part_bytes, say
        self._file: BinaryIO | None = None
        self._state, self._size = hashlib.sha256(), 0

    def write(self, block: bytes) -> None:
        """Write a block, into as many parts as it takes."""
        rest = memoryview(block)
        while rest:
            if self._file is None:
                self._file = self._fresh().open("wb")
                self._state, self._size = hashlib.sha256(), 0
            taken, rest = (
                rest[: self._part_bytes - self._size],
                rest[self._part_bytes - self._size :],
            )
            self._file.write(taken)
            self._state.update(taken)
            self._size += len(taken)
            if self._size == self._part_bytes:
                self.end_part()

    def end_part(self) -> None:
        """The part that is being written ends here."""
        if self._file is None:
            return
        self._file.close()
        fresh, name = self._fresh(), self._name()
        fresh.replace(self._out / name)
        self.parts.append(Part(name, self._size, Digest(self._state.hexdigest())))
        self._file = None
        self._say(f"{name}: {self._size} bytes")

    def close(self) -> None:
        """Give up the part that is being written, if there is one."""
        if self._file is not None:
            self._file.close()

    def _name(self) -> str:
        return f"part-{len(self.parts):03d}"

    def _fresh(self) -> Path:
        return self._out / f"{self._name()}.partial"


def _stream(packed: Sequence[Packed]) -> Iterator[bytes]:
    for one in packed:
        yield _header(one.content)
        state, size = hashlib.sha256(), 0
        with one.source.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                state.update(block)
                size += len(block)
                yield block
        got = Digest(state.hexdigest())
        if (size, got) != (one.content.size_bytes, one.content.digest):
            raise ProvisionError(
                f"{one.source}: got {size} bytes, {got}; want {one.content.size_bytes} bytes, "
                f"{one.content.digest}",
                f"rm {one.source}; then the same command again",
            )
        yield bytes(-size % _RECORD_BYTES)
    yield bytes(2 * _RECORD_BYTES)  # the end of an archive


def _header(content: Content) -> bytes:
    info = tarfile.TarInfo(content.path)
    info.size, info.mtime, info.mode = content.size_bytes, 0, 0o644
    # GNU's format: names of wheels can be longer than the 100 bytes of POSIX ustar.
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict")
