"""The checkpoint over all sealed runs: which there are, in which order, under one Merkle root.

Invariant: `records/data/RUNS` only grows, by one line a sealed run in order of arrival, and
`records/data/CHECKPOINT` holds its size and RFC 6962 root in the body form of a signed-note
checkpoint (C2SP tlog-checkpoint: origin, size, base64 root, one line each).
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from records import merkle
from records.digest import Digest
from records.errors import ChainError, FormatError

CHECKPOINT_NAME = "CHECKPOINT"
RUNS_NAME = "RUNS"
ORIGIN = "speculative-decoding-fp8/records"
_LEAF = re.compile(r"([0-9A-Za-z][0-9A-Za-z._-]{0,99}) (sha256:[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One sealed run: its id and the digest of its seal.json. Its text is the Merkle leaf."""

    run_id: str
    seal: Digest

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
        if len(lines) != 4 or lines[0] != ORIGIN or lines[3] != "" or not lines[1].isdecimal():
            raise FormatError(f"{CHECKPOINT_NAME}: want three lines: {ORIGIN}, size, base64 root")
        try:
            checkpoint = cls(int(lines[1]), Digest(base64.b64decode(lines[2], validate=True).hex()))
        except binascii.Error as error:
            raise FormatError(f"{CHECKPOINT_NAME}: root is not base64: {error}") from error
        if str(checkpoint) != text:
            raise FormatError(f"{CHECKPOINT_NAME}: not in canonical form")
        return checkpoint


def parse_runs(text: str) -> tuple[Leaf, ...]:
    """The leaves of a RUNS file; FormatError names the line."""
    if text and not text.endswith("\n"):
        raise FormatError(f"{RUNS_NAME}: the last line has no line end")
    leaves = []
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            leaves.append(Leaf.parse(line))
        except FormatError as error:
            raise FormatError(f"{RUNS_NAME} line {number}: {error.message}") from error
    return tuple(leaves)


def add_run(data: Path, leaf: Leaf) -> bool:
    """Append a sealed run to RUNS and renew CHECKPOINT; False if it is there already.

    ChainError if the run is there under another seal, or if the two files disagree beforehand.
    """
    runs = data / RUNS_NAME
    text = runs.read_text() if runs.exists() else ""
    leaves = parse_runs(text)
    _check(data, leaves)
    for known in leaves:
        if known.run_id == leaf.run_id:
            if known.seal != leaf.seal:
                raise ChainError(
                    f"run {leaf.run_id} was sealed as {known.seal}, now it is {leaf.seal}",
                    remedy="kit audit",
                )
            return False
    with runs.open("a") as file:
        file.write(f"{leaf}\n")
        file.flush()
        os.fsync(file.fileno())
    fresh = data / f".{CHECKPOINT_NAME}.new"
    with fresh.open("w") as file:
        file.write(str(Checkpoint.of([*leaves, leaf])))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(data / CHECKPOINT_NAME)
    return True


def _check(data: Path, leaves: Sequence[Leaf]) -> None:
    """The checkpoint must cover these leaves, or all but the last (a stop between two writes)."""
    path = data / CHECKPOINT_NAME
    if not path.exists():
        if len(leaves) > 1:
            raise ChainError(f"{RUNS_NAME} lists {len(leaves)} runs, but there is no {path.name}")
        return
    stated = Checkpoint.parse(path.read_text())
    if stated not in (Checkpoint.of(leaves), Checkpoint.of(leaves[:-1])):
        raise ChainError(
            f"{RUNS_NAME} and {path.name} disagree: root {stated.root} at size {stated.size}, "
            f"want {Checkpoint.of(leaves).root} at size {len(leaves)}",
            remedy="restore both from git: git checkout -- records/data",
        )
