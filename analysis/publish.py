"""Tables as files: one directory a run, and one for each set of runs that may be pooled.

Invariant: a run's directory depends on that run alone, so it never changes when others are added;
what is written twice has the same bytes.

Committed tables stand under paper/tables/<run>/ and are immutable like their run: the audit makes
them again and compares. Pooled tables grow with every run, so they are never committed; they are
made under build/tables/ when wanted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.claiming.reading import StudyRun
from analysis.pools import Pool, pools
from analysis.reading import Run, read_run, sealed_runs
from analysis.table import RENDERERS, Table
from analysis.tables import study_tables
from records.errors import ForeignDirectoryError


def write_tables(data: Path, out: Path) -> list[Path]:
    """Write the tables of every sealed real run below `data`, and pooled ones, under `out`.

    ChainError, FormatError, ForeignDirectoryError: a run's records do not hold, or two directories
    hold one run; nothing is written.
    """
    runs = [read_run(directory) for directory in sealed_runs(data)]
    return write_studies(studies([run for run in runs if not run.started.synthetic]), out)


@dataclass(frozen=True, slots=True)
class Study:
    """A run, or runs that may be pooled; `name` is the directory of its tables."""

    name: str
    runs: tuple[str, ...]
    tables: tuple[Table, ...]


def studies(runs: Sequence[Run]) -> list[Study]:
    """One study a run, then one for each set of runs that may be pooled.

    ForeignDirectoryError: two of them are the same run, which is no replicate of itself.
    """
    require_distinct(runs)
    alone = [Study(run.run_id, (run.run_id,), tuple(study_tables([run]))) for run in runs]
    return alone + [pooled_study(pool, pool.members(runs)) for pool in pools(runs)]


def pooled_study(pool: Pool, members: Sequence[Run]) -> Study:
    """The tables over the members of a pool, each with a note of what was pooled."""
    return Study(pool.name, pool.runs, tuple(study_tables(members, (pool.note,))))


def require_distinct(runs: Iterable[Run | StudyRun]) -> None:
    """ForeignDirectoryError: two of these are the same run."""
    counts = Counter(run.run_id for run in runs)
    twice = sorted(run_id for run_id, count in counts.items() if count > 1)
    if twice:
        raise ForeignDirectoryError(
            f"more than one directory holds run {', '.join(twice)}", remedy="remove the copies"
        )


def write_studies(found: Sequence[Study], out: Path) -> list[Path]:
    """Write the tables of each study to `out`/<name>/."""
    return [path for one in found for path in write_files(out / one.name, table_files(one.tables))]


def write_run_tables(run: Run, out: Path) -> list[Path]:
    """Write the tables of one run to `out`/<run id>/."""
    return write_studies(studies([run]), out)


def table_files(tables: Iterable[Table]) -> dict[str, bytes]:
    """File name -> bytes, for every table in every form."""
    return {
        f"{table.name}.{suffix}": render(table).encode()
        for table in tables
        for suffix, render in RENDERERS
    }


def write_files(directory: Path, files: dict[str, bytes]) -> list[Path]:
    """Write these files, and return their paths in order of name."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, data in sorted(files.items()):
        path = directory / name
        path.write_bytes(data)
        paths.append(path)
    return paths
