"""The committed tables of a run come out again from its records, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from analysis.publish import table_files
from analysis.reading import read_run
from analysis.tables import study_tables
from audit.difference import first_difference
from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView
from records.errors import ChainError, ForeignDirectoryError, FormatError, UnknownRunError
from records.run_directory import RunDirectory

TABLES = Path("paper") / "tables"

DIFFERS = Code(
    "TABLE01",
    "error",
    "a committed table is not what the records give",
    "Tables are derived from records by analysis/ and from nothing else, so that making them again "
    "gives the same bytes.",
    "kit analyze RUN --paper writes them again from the records",
)
ABSENT = Code(
    "TABLE02",
    "error",
    "a table of a run is missing",
    "The tables of a run are committed together, or not at all.",
    "kit analyze RUN --paper writes them again",
)
STRANGER = Code(
    "TABLE03",
    "error",
    "a file among the tables that no run gives",
    "paper/tables/ holds one directory a sealed run, and in it the run's tables and nothing else.",
    "move the file elsewhere",
)
NO_RECORDS = Code(
    "TABLE04",
    "error",
    "tables of a run whose records do not hold",
    "Tables can be no better than the records beneath them.",
    "see what the other checks say of this run",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Make the tables of each run in paper/tables again and compare."""
    top = repository.root / TABLES
    if not top.is_dir():
        return
    for path in sorted(top.iterdir()):
        if not path.is_dir():
            yield STRANGER.at(repository.show(path), 0, "", "a file", "directories, one a run")
            continue
        yield from _run(repository, path)


def _run(repository: RepositoryView, path: Path) -> Iterator[Finding]:
    shown = repository.show(path)
    directory = RunDirectory(repository.data / path.name)
    if not directory.is_sealed:
        want = repository.show(directory.path)
        yield STRANGER.at(shown, 0, "", path.name, f"a sealed run {want}")
        return
    try:
        files = table_files(study_tables([read_run(directory)]))
    except (ChainError, ForeignDirectoryError, FormatError, UnknownRunError) as error:
        yield NO_RECORDS.at(shown, 0, f"{NO_RECORDS.title}: {error.message}")
        return
    for name, want_bytes in sorted(files.items()):
        file = path / name
        if not file.is_file():
            yield ABSENT.at(
                repository.show(file), 0, "", "no such file", f"{len(want_bytes)} bytes"
            )
            continue
        got_bytes = file.read_bytes()
        if got_bytes != want_bytes:
            line, got, want = first_difference(got_bytes, want_bytes)
            yield DIFFERS.at(repository.show(file), line, "", got, want)
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.relative_to(path).as_posix() not in files:
            yield STRANGER.at(repository.show(file), 0, "", file.name, "no such table")


CHECK = Check(
    "tables",
    "The committed tables of a run come out again from its records, byte for byte.",
    (DIFFERS, ABSENT, STRANGER, NO_RECORDS),
    check,
)
