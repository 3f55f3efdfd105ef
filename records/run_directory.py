"""One run on disk: where its parts are, and reading them back verified.

Invariant: whoever reads events through this module has had every byte up to there checked.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from records import canonical, chain, schema
from records.chain import ChainState
from records.digest import Digest
from records.errors import ChainError, FormatError, UnknownRunError
from records.journal import EVENTS_NAME
from records.seal import SEAL_NAME, Seal

# A run.closed is far shorter: its reason has one line.
_TAIL_BYTES = 1 << 16


class RunFileError(ChainError):
    """A file that is not what the seal says; `file` and `line` (0: the whole file) say where."""

    def __init__(self, file: Path, line: int, problem: str) -> None:
        place = f"{file}:{line}" if line else str(file)
        super().__init__(f"{place}: {problem}", remedy="kit audit")
        self.file = file
        self.line = line
        self.problem = problem


def is_regular(path: Path) -> bool:
    """Whether a file is there that can be read to an end: no link, pipe, device or directory."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A directory that holds one run, sealed or still growing."""

    path: Path

    @property
    def events(self) -> Path:
        """The journal."""
        return self.path / EVENTS_NAME

    @property
    def is_sealed(self) -> bool:
        """Whether the run has ended and was sealed."""
        return is_regular(self.path / SEAL_NAME)

    @property
    def closed(self) -> schema.RunClosed | None:
        """The event with which the run was closed at home, where its last line is that.

        Only the last line is read, and nothing verified: for lists of runs, not for evidence.
        """
        if not is_regular(self.events):  # opening a pipe waits for ever
            return None
        try:
            with self.events.open("rb") as file:
                end = file.seek(0, 2)
                file.seek(max(0, end - _TAIL_BYTES))
                last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
            event = schema.decode(canonical.decode(last)).event
        except (OSError, FormatError):
            return None
        return event if isinstance(event, schema.RunClosed) else None

    @property
    def seal_digest(self) -> Digest:
        """The digest of seal.json, by which the checkpoint knows the run."""
        return Digest.of((self.path / SEAL_NAME).read_bytes())

    def seal(self) -> Seal:
        """The parsed seal. UnknownRunError where there is none, RunFileError if malformed."""
        if not self.is_sealed:
            raise UnknownRunError(f"{self.path} is not a sealed run")
        data = (self.path / SEAL_NAME).read_bytes()
        try:
            return Seal.parse(data)
        except FormatError as error:
            raise RunFileError(self.path / SEAL_NAME, 1, error.message) from error

    def verify_chain(self) -> ChainState:
        """Check the journal against its own chain and, if sealed, its seal."""
        want = self.seal().events if self.is_sealed else None
        if not is_regular(self.events):
            size = f"{want.lines} lines (from the seal)" if want else "a journal"
            raise RunFileError(self.events, 0, f"missing or no regular file; want {size}")
        try:
            with self.events.open("rb") as file:
                state = chain.verify(
                    chain.lines_of(file),
                    head=want.head if want else None,
                    length=want.lines if want else None,
                )
        except chain.BrokenLineError as error:
            raise RunFileError(self.events, error.line, error.message) from error
        if want and state.bytes != want.bytes:
            raise RunFileError(
                self.path / SEAL_NAME,
                1,
                f"got {want.bytes} bytes for {EVENTS_NAME}, want {state.bytes} (from its chain)",
            )
        return state

    def verify_files(self) -> Iterator[RunFileError]:
        """Every file that differs from the seal, is missing, or is not named by it."""
        seal = self.seal()
        for name, want in seal.files.items():
            path = self.path / name
            if path.is_symlink():
                continue  # one of the strangers
            if not is_regular(path):
                yield RunFileError(path, 0, f"missing; want {want.bytes} bytes of {want.digest}")
                continue
            with path.open("rb") as file:
                got = Digest.of_file(file)
            if got != want.digest:
                size = path.stat().st_size
                yield RunFileError(
                    path, 0, f"got {size} bytes of {got}, want {want.bytes} of {want.digest}"
                )
        for path in self.strangers(seal):
            yield RunFileError(
                path, 0, "not named by the seal, so added afterwards; want no such file"
            )

    def strangers(self, seal: Seal) -> Iterator[Path]:
        """Links, files that the seal does not name, and empty directories."""
        files = {EVENTS_NAME, SEAL_NAME, *seal.files}
        folders = {str(parent) for name in files for parent in PurePosixPath(name).parents}
        for path in sorted(self.path.rglob("*")):
            name = path.relative_to(self.path).as_posix()
            if path.is_symlink() or not path.is_dir():
                strange = path.is_symlink() or name not in files
            else:
                strange = name not in folders and not any(path.iterdir())
            if strange:
                yield path

    def read(self) -> Iterator[schema.Envelope]:
        """Decode all events strictly, after the chain was checked. FormatError names the line."""
        self.verify_chain()
        with self.events.open("rb") as file:
            for number, line in enumerate(chain.lines_of(file), 1):
                where = f"{self.events}:{number}"
                try:
                    value = canonical.decode(line[:-1])
                except FormatError as error:
                    raise FormatError(f"{where}: {error.message}") from error
                yield schema.decode(value, where)


def runs_in(data: Path) -> tuple[RunDirectory, ...]:
    """Every run below `data`, sealed or not, in order of name; a link to one is none."""
    if not data.is_dir():
        return ()
    found = (
        path
        for path in sorted(data.iterdir())
        if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
    )
    return tuple(RunDirectory(path) for path in found)
