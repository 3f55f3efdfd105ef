"""Tables as files: one directory a run, and one for each set of runs that may be pooled.

Invariant: a run's directory depends on that run alone, so it never changes when others are added;
what is written twice has the same bytes.

Committed tables stand under paper/tables/<run>/ and are immutable like their run: the audit makes
them again and compares. Pooled tables grow with every run, so they are never committed; they are
made under build/tables/ when wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    groups = [(run.run_id, [run]) for run in runs] + list(pools(runs))
    return [
        Study(name, tuple(run.run_id for run in group), tuple(study_tables(group)))
        for name, group in groups
    ]


def require_distinct(runs: Sequence[Run]) -> None:
    """ForeignDirectoryError: two of these are the same run."""
    ids = [run.run_id for run in runs]
    twice = sorted({run_id for run_id in ids if ids.count(run_id) > 1})
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


def pools(runs: Sequence[Run]) -> Iterator[tuple[str, list[Run]]]:
    """Sets of two or more runs that may be analysed together, each with a directory name.

    Runs may be pooled when format, plan and harness agree (records/schema.py); engine binding and
    host are strata, so runs that differ in them are kept apart here.
    """
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        started = run.started
        engine = str(run.engines[0].digest) if run.engines else ""
        key: tuple[str, ...] = (
            started.plan.id,
            str(started.format),
            str(started.plan_digest),
            str(started.harness_digest),
            engine,
            run.host_id,
        )
        groups.setdefault(key, []).append(run)
    for stratum, group in sorted(groups.items()):
        if len(group) > 1:
            first = min(run.run_id for run in group)
            yield f"pooled-{stratum[0]}-from-{first}", group
