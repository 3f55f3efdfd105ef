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
            raise FormatError(f"{RUNS_NAME} line {number}: run {leaf.run_id} for the second time")
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
    text = _text(data / RUNS_NAME)
    whole = text[: text.rfind("\n") + 1]
    leaves = parse_runs(whole)
    # A torn last line was never under a checkpoint; one that was is an edit, and said so here.
    _check(stated, leaves, torn=whole != text)
    known = {one.run_id: one.seal for one in leaves}.get(leaf.run_id)
    if known is not None and known != leaf.seal:
        raise ChainError(
            f"run {leaf.run_id} was sealed as {known}, now it is {leaf.seal}", remedy="kit audit"
        )
    fd = os.open(data / RUNS_NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.ftruncate(fd, len(whole))
        if known is None:
            durable.write(fd, f"{leaf}\n".encode(), data / RUNS_NAME, f"run {leaf.run_id}")
            leaves = (*leaves, leaf)
    finally:
        os.close(fd)
    if stated != Checkpoint.of(leaves):
        durable.replace(data / CHECKPOINT_NAME, str(Checkpoint.of(leaves)).encode())
    return known is None


def _check(stated: Checkpoint | None, leaves: Sequence[Leaf], torn: bool) -> None:
    """The checkpoint must cover these leaves, or all but the last (a stop between two writes)."""
    covered = [Checkpoint.of(leaves)]
    if leaves and not torn:
        covered.append(Checkpoint.of(leaves[:-1]))
    if (stated or Checkpoint.of(())) not in covered:
        got = f"root {stated.root} at size {stated.size}" if stated else f"no {CHECKPOINT_NAME}"
        raise ChainError(
            f"{RUNS_NAME} and {CHECKPOINT_NAME} disagree: got {got}, "
            f"want root {covered[0].root} at size {len(leaves)}",
            remedy="restore both from git: git checkout -- records/data",
        )


def _text(path: Path) -> str:
    # As bytes: reading as text would turn "\r" into "\n" and so hide a changed byte.
    data = path.read_bytes() if path.exists() else b""
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{path.name} line {number}: not ASCII: {data[error.start]:#x}") from None
