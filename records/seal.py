"""The seal: what a finished run consists of, to the last byte.

Invariant: `seal.json` names every file of its run with length and digest; a file that it does not
name does not belong to the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from records import canonical, durable
from records.chain import ChainState
from records.decode import from_object, to_object
from records.digest import Digest
from records.errors import ForeignDirectoryError, FormatError
from records.journal import EVENTS_NAME

SEAL_NAME = "seal.json"
SEAL_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Events:
    """The journal: its length in lines and bytes, and the hash of its last line."""

    lines: int
    bytes: int
    head: Digest


@dataclass(frozen=True, slots=True)
class File:
    """One other file of the run."""

    bytes: int
    digest: Digest


@dataclass(frozen=True, slots=True)
class Seal:
    """Everything a run holds. `files` is keyed by path relative to the run, '/' between parts."""

    format: int
    run_id: str
    events: Events
    files: dict[str, File]

    def __post_init__(self) -> None:
        for name in self.files:
            parts = name.split("/")
            if not all(parts) or {".", ".."} & set(parts) or name in (EVENTS_NAME, SEAL_NAME):
                raise FormatError(f"not the name of a file beside the journal: {name!r}")

    def encode(self) -> bytes:
        """The bytes of seal.json: one canonical line."""
        return canonical.encode(to_object(self)) + b"\n"

    @classmethod
    def parse(cls, data: bytes) -> Seal:
        """Read seal.json; FormatError where it is not exactly what `encode` would write."""
        if not data.endswith(b"\n"):
            raise FormatError("seal.json: no line end")
        seal = from_object(cls, canonical.decode(data[:-1]), "seal.json")
        if seal.format != SEAL_FORMAT:
            raise FormatError(f"seal.json: format {seal.format}; this kit reads {SEAL_FORMAT}")
        return seal


def write_seal(run: Path, run_id: str, state: ChainState) -> Seal:
    """Seal the run directory `run` whose journal has ended in `state`.

    ForeignDirectoryError if it is sealed already, or holds what is neither file nor directory.
    """
    target = run / SEAL_NAME
    if target.exists():
        raise ForeignDirectoryError(f"{run} is sealed already; a sealed run is never changed")
    files = {}
    for path in sorted(run.rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise ForeignDirectoryError(f"{path} is neither a file nor a directory")
        if path.is_file() and path not in (run / EVENTS_NAME, durable.scratch_of(target)):
            with path.open("rb") as file:
                digest = Digest.of_file(file)
                files[path.relative_to(run).as_posix()] = File(file.tell(), digest)
    seal = Seal(SEAL_FORMAT, run_id, Events(state.lines, state.bytes, state.head), files)
    durable.replace(target, seal.encode())
    return seal
