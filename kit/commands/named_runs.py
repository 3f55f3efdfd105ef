"""Sealed runs by what a user names: ids, run directories, directories of runs; no verb of its own.

Invariant: only sealed runs are read, each once; two runs of one name but with different seals are
an error, not a choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from analysis.claiming.reading import StudyRun, study_run
from analysis.claiming.sharing import Sharing
from analysis.streaming.large_run import read_run_in_batches
from kit.home import Home
from kit.options import find_records
from records.errors import ForeignDirectoryError, UnknownRunError
from records.run_directory import RunDirectory, runs_in
from records.seal import SEAL_NAME

Runs = dict[str, RunDirectory]


def named_runs(here: Home, names: Iterable[str]) -> Runs:
    """The runs that these names mean, by id. UnknownRunError: none there, or one is not sealed."""
    found: Runs = {}
    for name in names:
        for run in _meant(here, name):
            _add(found, run)
    return found


def analyzable(here: Home, names: Iterable[str]) -> Iterator[RunDirectory]:
    """As `named_runs`, in the order of the names; a run that is named itself may be unsealed."""
    for name in names:
        if _holds_runs(Path(name)):
            yield from _meant(here, name)
        else:
            yield find_records(here, name)


def sealed_here(here: Home) -> Runs:
    """Every sealed run of the records, by id, from old to new.

    OSError: one cannot be looked into, so that it is not known whether it is sealed.
    """
    found = {}
    for run in runs_in(here.data):
        with suppress(FileNotFoundError):
            (run.path / SEAL_NAME).lstat()
        if run.is_sealed:
            found[run.path.name] = run
    return found


def without(runs: Runs, others: Runs) -> Runs:
    """The runs that are not among the others. ForeignDirectoryError: one name, two seals."""
    left = dict(runs)
    for name, run in others.items():
        if name in left:
            _same(left.pop(name), run)
    return left


def read_real(here: Home, runs: Runs) -> list[StudyRun]:
    """Verified and read; those that are synthetic are left out."""
    return [run for run in read_all(here, runs) if not run.started.synthetic]


def read_all(here: Home, runs: Runs) -> list[StudyRun]:
    """Verified and read, in order of id; one after the other, so that only figures are held."""
    sharing = Sharing()
    return [
        sharing.of(study_run(read_run_in_batches(run, here.cache), run))
        for _, run in sorted(runs.items())
    ]


def _meant(here: Home, name: str) -> Iterator[RunDirectory]:
    path = Path(name)
    if _holds_runs(path):
        records = path / "records" / "data"
        runs = [run for run in runs_in(records if records.is_dir() else path) if run.is_sealed]
        if not runs:
            raise UnknownRunError(f"no sealed run in {path}", "name a run, or a directory of runs")
        yield from runs
        return
    run = find_records(here, name)
    if not run.is_sealed:
        raise UnknownRunError(
            f"run {run.path.name} is not sealed: it has not ended",
            f"kit reproduce --run {run.path.name} brings it to its end",
        )
    yield run


def _holds_runs(path: Path) -> bool:
    return path.is_dir() and not RunDirectory(path).events.is_file()


def _add(found: Runs, run: RunDirectory) -> None:
    name = run.path.absolute().name
    if name in found:
        _same(found[name], run)
    found[name] = run


def _same(one: RunDirectory, two: RunDirectory) -> None:
    if one.seal_digest != two.seal_digest:
        raise ForeignDirectoryError(
            f"two runs go by the name {two.path.absolute().name} and have different seals",
            "kit audit tells which of them was edited",
        )
