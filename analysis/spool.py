"""The tables of many runs, made as each is read, kept on disk until all of them are known to hold.

Invariant: one run's requests are held at a time, those of a pool together; nothing is handed out
before every run was verified, and what is handed out is what `analysis.publish.studies` gives.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from analysis.claiming.line_index import LineIndex
from analysis.claiming.reading import StudyRun, study_run
from analysis.claiming.sharing import Sharing
from analysis.pools import pools
from analysis.publish import Study, pooled_study, require_distinct, studies
from analysis.reading import Run
from analysis.streaming.large_run import read_run_in_batches
from records.run_directory import RunDirectory


@dataclass(slots=True)
class Spool:
    """Runs that were read. `runs`: what is kept of each, but for its lines, in the order given."""

    _file: IO[bytes]
    _cache: Path
    runs: list[StudyRun] = field(default_factory=list)
    _places: list[RunDirectory] = field(default_factory=list)
    _sharing: Sharing = field(default_factory=Sharing)

    def add(self, run: Run, directory: RunDirectory) -> None:
        """Make the tables of a run that was read from this directory, and let go of it."""
        (study,) = studies([run])
        self._file.seek(0, os.SEEK_END)
        pickle.dump(study, self._file, pickle.HIGHEST_PROTOCOL)
        kept = study_run(run, directory)
        # Tables name no lines of a journal.
        self.runs.append(self._sharing.of(replace(kept, lines=LineIndex())))
        self._places.append(directory)

    def alone(self) -> Iterator[Study]:
        """The tables of each run, in the order given."""
        self._file.seek(0)
        for _ in self.runs:
            study: Study = pickle.load(self._file)  # noqa: S301 - this process wrote it
            yield study

    def pooled(self) -> Iterator[Study]:
        """The tables over each pool, whose runs are read a second time."""
        places = {run.run_id: at for run, at in zip(self.runs, self._places, strict=True)}
        for pool in pools(self.runs):
            members = [read_run_in_batches(places[run_id], self._cache) for run_id in pool.runs]
            yield pooled_study(pool, pool.members(members))


@contextmanager
def spool(
    directories: Iterable[RunDirectory], cache: Path, wanted: Callable[[Run], bool]
) -> Iterator[Spool]:
    """Read these runs, those that are `wanted`. `cache`: as `read_run_in_batches`.

    ChainError, FormatError, ForeignDirectoryError: the records of one do not hold, or two are the
    same run.
    """
    with TemporaryFile() as file:
        made = Spool(file, cache)
        for directory in directories:
            run = read_run_in_batches(directory, cache)
            if wanted(run):
                made.add(run, directory)
        require_distinct(made.runs)
        yield made
