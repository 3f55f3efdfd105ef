"""The repository as the checks see it: paths, runs, git, and each journal read once.

Invariant: reading only. A journal is read line by line, requests are kept as counts, so memory does
not grow with the number of chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from audit.git import Git
from audit.journal_scan import JournalScan, scan_journal
from records.errors import ChainError, FormatError
from records.run_directory import RunDirectory, runs_in
from records.seal import Seal

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunView:
    """One run directory. `seal`, `seal_problem`: read when they are asked for, and kept."""

    directory: RunDirectory
    _read: list[tuple[Seal | None, str]] = field(default_factory=list)

    @property
    def seal(self) -> Seal | None:
        """The seal, where there is one that can be read."""
        return self._seal()[0]

    @property
    def seal_problem(self) -> str:
        """Why a seal that is there cannot be read; "" where it can."""
        return self._seal()[1]

    def _seal(self) -> tuple[Seal | None, str]:
        if not self._read:
            self._read.append(_read_seal(self.directory))
        return self._read[0]

    @property
    def name(self) -> str:
        """The name of the directory, which must be the run's id."""
        return self.directory.path.name

    @property
    def is_sealed(self) -> bool:
        """Whether there is a seal, readable or not."""
        return self.directory.is_sealed


@dataclass(frozen=True, slots=True)
class RepositoryView:
    """`root`: the project; `data`: the records; both absolute. `only`: one run of them, "": all.

    What git said is kept for all views of one audit, which asks it the same of every run.
    """

    root: Path
    data: Path
    only: str = ""
    _runs: list[RunView] = field(default_factory=list)
    _scans: dict[str, JournalScan] = field(default_factory=dict)
    _kept: dict[str, Any] = field(default_factory=dict)
    _repositories: dict[Path, Git | None] = field(default_factory=dict)
    _past: dict[Path, tuple[bytes, ...]] = field(default_factory=dict)

    @property
    def runs(self) -> tuple[RunView, ...]:
        """Every run directory below the records, in order of name; with `only` that one."""
        if not self._runs:
            directories = [RunDirectory(self.data / self.only)] if self.only else runs_in(self.data)
            self._runs.extend(map(RunView, directories))
        return tuple(self._runs)

    def each(self) -> Iterator[RepositoryView]:
        """A view of each run, which alone keeps what is read of it: one goes before the next."""
        for run in self.runs:
            yield RepositoryView(
                self.root, self.data, run.name, _repositories=self._repositories, _past=self._past
            )

    def once(self, key: str, make: Callable[[], T]) -> T:
        """What `make` gives, made once for all checks of one audit."""
        if key not in self._kept:
            self._kept[key] = make()
        kept: T = self._kept[key]
        return kept

    def git(self, directory: Path) -> Git | None:
        """The repository that a directory lies in, as `Git.find` has it."""
        if directory not in self._repositories:
            self._repositories[directory] = Git.find(directory)
        return self._repositories[directory]

    def versions(self, path: Path) -> Iterator[bytes]:
        """A file as it is, then as it was in each commit that changed it, newest first."""
        if path.is_file():
            yield path.read_bytes()
        if path not in self._past:
            git = self.git(path.parent)
            self._past[path] = () if git is None else tuple(git.versions(path))
        yield from self._past[path]

    def scan(self, run: RunView) -> JournalScan:
        """The run's journal, read once and kept."""
        if run.name not in self._scans:
            self._scans[run.name] = scan_journal(run.directory.events)
        return self._scans[run.name]

    def readable(self) -> tuple[tuple[RunView, JournalScan], ...]:
        """The runs whose every line decodes: what a line means is asked of these alone.

        The others are reported by the checks of chain and format.
        """
        scanned = ((run, self.scan(run)) for run in self.runs)
        return tuple((run, scan) for run, scan in scanned if scan.decodes and scan.events)

    def show(self, path: Path) -> str:
        """A path as the user would type it: relative to the project where it lies inside."""
        absolute = path if path.is_absolute() else self.root / path
        if absolute.is_relative_to(self.root):
            return absolute.relative_to(self.root).as_posix()
        return absolute.as_posix()


def _read_seal(directory: RunDirectory) -> tuple[Seal | None, str]:
    if not directory.is_sealed:
        return None, ""
    try:
        return directory.seal(), ""
    except (FormatError, ChainError) as error:
        return None, error.message
