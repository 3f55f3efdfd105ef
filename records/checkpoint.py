"""The checkpoint over all sealed runs: which there are, in which order, under one Merkle root.

Invariant: `records/data/RUNS` only grows, by one line a sealed run in order of arrival, and
`records/data/CHECKPOINT` holds its size and RFC 6962 root in the body form of a signed-note
checkpoint (C2SP tlog-checkpoint: origin, size, base64 root, one line each).
"""

from __future__ import annotations

import base64
import fcntl
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from records import durable, merkle
from records.digest import Digest
from records.errors import ChainError, FormatError

CHECKPOINT_NAME = "CHECKPOINT"
RUNS_NAME = "RUNS"
ORIGIN = "speculative-decoding-fp8/records"
_SIZE = re.compile(r"0|[1-9][0-9]{0,17}")
_LEAF = re.compile(r"([0-9A-Za-z][0-9A-Za-z._-]{0,99}) (sha256:[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One sealed run: its id and the digest of its seal.json. Its text is the Merkle leaf."""

    run_id: str
    seal: Digest

    def __post_init__(self) -> None:
        if not _LEAF.fullmatch(str(self)):
            raise FormatError(f"not a run id: {self.run_id!r}")

    def __str__(self) -> str:
        return f"{self.run_id} {self.seal}"

    @classmethod
    def parse(cls, line: str) -> Leaf:
        """Read `<run id> sha256:<hex>`."""
        match = _LEAF.fullmatch(line)
        if match is None:
            raise FormatError(f"not `<run id> sha256:<64 hex digits>`: {line[:120]!r}")
        return cls(match[1], Digest.parse(match[2]))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Size and root of the tree over the leaves."""

    size: int
    root: Digest

    @classmethod
    def of(cls, leaves: Sequence[Leaf]) -> Checkpoint:
        """The checkpoint of these leaves in this order."""
        return cls(len(leaves), merkle.root([str(leaf).encode() for leaf in leaves]))

    def __str__(self) -> str:
        root = base64.b64encode(bytes.fromhex(self.root.hex)).decode()
        return f"{ORIGIN}\n{self.size}\n{root}\n"

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Read the three lines; FormatError where they are not exactly what `str` would write."""
        lines = text.split("\n")
        if len(lines) != 4 or lines[3] != "":
            raise FormatError(f"{CHECKPOINT_NAME}: want three lines: {ORIGIN}, size, base64 root")
        if lines[0] != ORIGIN:
            raise FormatError(f"{CHECKPOINT_NAME} line 1: got {lines[0]!r}, want {ORIGIN!r}")
        if not _SIZE.fullmatch(lines[1]):
            raise FormatError(f"{CHECKPOINT_NAME} line 2: got {lines[1]!r}, want a size")
        try:
            root = Digest(base64.b64decode(lines[2], validate=True).hex())
        except ValueError as error:
            raise FormatError(f"{CHECKPOINT_NAME} line 3: not a base64 root: {error}") from error
        except FormatError as error:
            raise FormatError(f"{CHECKPOINT_NAME} line 3: {error.message}") from error
        checkpoint = cls(int(lines[1]), root)
        if str(checkpoint) != text:
            raise FormatError(f"{CHECKPOINT_NAME} line 3: not in canonical form")
        return checkpoint


def parse_runs(text: str) -> tuple[Leaf, ...]:
    """The leaves of a RUNS file; FormatError names the line."""
    if text and not text.endswith("\n"):
        raise FormatError(f"{RUNS_NAME}: the last line has no line end")
    leaves: dict[str, Leaf] = {}
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            leaf = Leaf.parse(line)
        except FormatError as error:
            raise FormatError(f"{RUNS_NAME} line {number}: {error.message}") from error
        if leaf.run_id in leaves:
            raise _listed_twice(number, leaf)
        leaves[leaf.run_id] = leaf
    return tuple(leaves.values())


def read_runs(data: Path) -> tuple[Leaf, ...]:
    """The leaves of `data`/RUNS, none where there is no such file; FormatError names the line."""
    return parse_runs(_text(data / RUNS_NAME))


def read_checkpoint(data: Path) -> Checkpoint | None:
    """What `data`/CHECKPOINT states, None where there is no such file."""
    path = data / CHECKPOINT_NAME
    return Checkpoint.parse(_text(path)) if path.exists() else None


def add_run(data: Path, leaf: Leaf) -> bool:
    """Append a sealed run to RUNS and renew CHECKPOINT; False if it is there already.

    What a stop in the midst of an earlier call left is completed. ChainError if the run is there
    under another seal, or if the two files disagree beforehand.
    """
    lock = os.open(data, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _add_run(data, leaf)
    finally:
        os.close(lock)


def _add_run(data: Path, leaf: Leaf) -> bool:
    stated = read_checkpoint(data)
    text = _read(data / RUNS_NAME)
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        _text(data / RUNS_NAME)
    known = _known(data.absolute())
    known.follow(whole)
    # A torn last line was never under a checkpoint; one that was is an edit, and said so here.
    _check(stated, known, torn=whole != text)
    seal = known.seals.get(leaf.run_id)
    if seal is not None and seal != leaf.seal:
        raise ChainError(
            f"run {leaf.run_id} was sealed as {seal}, now it is {leaf.seal}", remedy="kit audit"
        )
    fd = os.open(data / RUNS_NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.ftruncate(fd, len(whole))
        if seal is None:
            line = f"{leaf}\n".encode()
            durable.write(fd, line, data / RUNS_NAME, f"run {leaf.run_id}")
            known.follow(whole + line)
    finally:
        os.close(fd)
    if stated != known.checkpoint:
        durable.replace(data / CHECKPOINT_NAME, str(known.checkpoint).encode())
    return seal is None


class _Known:
    """What RUNS was when it was last looked at here, so that only lines added since are parsed.

    Never trusted without its bytes: every byte is compared again at each use.
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._text = b""
        self.seals: dict[str, Digest] = {}
        self._all = self._all_but_last = merkle.Frontier()

    def follow(self, text: bytes) -> None:
        """Take in whole lines of RUNS. FormatError names the line."""
        added = text[len(self._text) :]
        if not text.startswith(self._text):
            self._forget()
            added = text
        try:
            for line in added.split(b"\n")[:-1]:
                self._add(line)
        except FormatError:
            self._forget()
            raise
        self._text = text

    def _add(self, line: bytes) -> None:
        number = self._all.size + 1
        try:
            leaf = Leaf.parse(line.decode("ascii"))
        except UnicodeDecodeError as error:
            raise _not_ascii(RUNS_NAME, number, error) from None
        except FormatError as error:
            raise FormatError(f"{RUNS_NAME} line {number}: {error.message}") from error
        if leaf.run_id in self.seals:
            raise _listed_twice(number, leaf)
        self._all_but_last, self._all = self._all, self._all.append(line)
        self.seals[leaf.run_id] = leaf.seal

    @property
    def checkpoint(self) -> Checkpoint:
        """That of all lines."""
        return Checkpoint(self._all.size, self._all.root)

    @property
    def checkpoint_before(self) -> Checkpoint:
        """That of all lines but the last."""
        return Checkpoint(self._all_but_last.size, self._all_but_last.root)


@lru_cache(maxsize=8)
def _known(_data: Path) -> _Known:
    """Of a directory in this process; used under the directory's lock alone."""
    return _Known()


def _check(stated: Checkpoint | None, known: _Known, torn: bool) -> None:
    """The checkpoint must cover these leaves, or all but the last (a stop between two writes)."""
    covered = [known.checkpoint]
    if known.seals and not torn:
        covered.append(known.checkpoint_before)
    if (stated or Checkpoint.of(())) not in covered:
        got = f"root {stated.root} at size {stated.size}" if stated else f"no {CHECKPOINT_NAME}"
        raise ChainError(
            f"{RUNS_NAME} and {CHECKPOINT_NAME} disagree: got {got}, "
            f"want root {covered[0].root} at size {covered[0].size}",
            remedy="restore both from git: git checkout -- records/data",
        )


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _text(path: Path) -> str:
    # As bytes: reading as text would turn "\r" into "\n" and so hide a changed byte.
    data = _read(path)
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        raise _not_ascii(path.name, data.count(b"\n", 0, error.start) + 1, error) from None


def _not_ascii(name: str, number: int, error: UnicodeDecodeError) -> FormatError:
    return FormatError(f"{name} line {number}: not ASCII: {error.object[error.start]:#x}")


def _listed_twice(number: int, leaf: Leaf) -> FormatError:
    return FormatError(f"{RUNS_NAME} line {number}: run {leaf.run_id} for the second time")
