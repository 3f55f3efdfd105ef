"""`kit export`: runs in forms that others read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from analysis.one_kind import require_one_kind
from analysis.reading import Run
from analysis.streaming.large_run import read_run_in_batches
from analysis.whole import require_place, whole_directory, write_whole
from kit.commands.named_runs import sealed_here
from kit.heartbeat import heartbeat
from kit.home import Home
from kit.options import find_records, home, json_option
from kit.output import echo, inert_json, print_json, say
from kit.outside_records import Place, require_outside_records
from kit.parts import Parts
from records.digest import Digest
from records.errors import ExportError, UnknownRunError
from records.limits import printable
from records.run_directory import RunDirectory

F = TypeVar("F", bound=Callable[..., Any])
_Runs = Sequence[tuple[RunDirectory, Run]]


@click.group(cls=Parts)
def command() -> None:
    """Write runs in forms that others read; a synthetic run says in each that it is one.

    RUN is a run's id or its beginning, or a path to one. The chain of each run is verified first.
    analysis/exporting/TABLES.md tells every column of the tables.

    \b
    Example:
      kit export parquet 20261130T115921Z --out build/export
      kit export ro-crate 20261130T115921Z --out build/crate.zip
      kit export in-toto 20261130T115921Z
    """


def _runs_argument(function: F) -> F:
    return click.argument("names", nargs=-1, required=True, metavar="RUN...")(function)


def _out_option(metavar: str) -> Callable[[F], F]:
    return click.option(
        "--out", required=True, metavar=metavar, type=Place(), help="Where to write.",
    )  # fmt: skip


@command.command("parquet")
@_runs_argument
@_out_option("DIR")
@json_option
def parquet(names: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Windows, requests and chunks as Parquet, for pandas, polars, DuckDB and others.

    \b
    Example:
      kit export parquet 20261130T115921Z --out build/export
    """
    _tables(names, out, "parquet", as_json)


@command.command("csv")
@_runs_argument
@_out_option("DIR")
@json_option
def csv(names: tuple[str, ...], out: Path, as_json: bool) -> None:
    """The same tables as CSV, for spreadsheets: what would begin a formula there does not.

    Such a text has an apostrophe before it; analysis/exporting/TABLES.md tells how to undo that.
    For exact texts take Parquet.

    \b
    Example:
      kit export csv 20261130T115921Z --out build/export
    """
    _tables(names, out, "csv", as_json)


def _tables(names: tuple[str, ...], out: Path, form: Any, as_json: bool) -> None:
    from analysis.exporting.table_files import write_tables  # Arrow takes a while to load

    here = home()
    require_outside_records(out, here)
    require_place(out, directory=True)
    runs = _read(here, names)
    for directory, run in runs:
        if not directory.is_sealed:
            say(f"warning: run {run.run_id} is not sealed: it may still grow, and has no digest")
    with heartbeat(say, "writing"):
        paths = write_tables([run for _, run in runs], _seals(runs), out, form)
    _told(paths, as_json)


def _one_line(_ctx: click.Context, _param: click.Parameter, text: str) -> str:
    if printable(text) != text:
        raise click.BadParameter("want one line without control or format characters")
    return text


@command.command("ro-crate")
@_runs_argument
@_out_option("DIR|FILE.zip")
@click.option(
    "--agent", default="", metavar="NAME", callback=_one_line,
    help="Who carried the runs out; the records do not say.",
)  # fmt: skip
@click.option(
    "--agent-url", default="", metavar="URL", callback=_one_line,
    help="Their ROR or ORCID identifier, or home page.",
)  # fmt: skip
@json_option
def ro_crate(names: tuple[str, ...], out: Path, agent: str, agent_url: str, as_json: bool) -> None:
    """Sealed runs as an RO-Crate 1.2 (Process Run Crate): every file, what made it, from what.

    \b
    Example:
      kit export ro-crate 20261130T115921Z --out build/crate.zip --agent "Example University"
    """
    from analysis.exporting.crate_files import require_free, write_crate
    from analysis.exporting.ro_crate import Agent

    if agent_url and not agent:
        raise click.UsageError("--agent-url goes with --agent NAME")
    here = home()
    require_outside_records(out, here)
    require_free(out)
    runs = _read(here, names)
    with heartbeat(say, "holding every file against its seal, and copying"):
        path, files = write_crate(runs, out, Agent(agent, agent_url) if agent else None)
    if as_json:
        print_json({"crate": str(path), "files": files})
    else:
        say(f"written: {path}, {files} files")


@command.command("in-toto")
@click.argument("name", metavar="RUN")
@click.option(
    "--out", metavar="FILE", type=Place(),
    help="Where to write; default: stdout.",
)  # fmt: skip
def in_toto(name: str, out: Path | None) -> None:
    """An in-toto statement: what the audit finds of a sealed run, over the digests of its files.

    Unsigned: whoever vouches for it signs it, for example with cosign attest-blob.

    \b
    Example:
      kit export in-toto 20261130T115921Z --out build/run.intoto.json
    """
    from analysis.exporting.in_toto import statement
    from kit.commands.export_outcome import outcome_of

    here = home()
    if out is not None:
        require_outside_records(out, here)
        require_place(out, directory=False)
    ((directory, run),) = _read(here, (name,))
    if not directory.is_sealed:
        raise ExportError(
            f"run {run.run_id} is not sealed: it may still grow",
            f"kit reproduce --run {run.run_id} brings it to its end",
        )
    with heartbeat(say, "auditing"):
        outcome = outcome_of(here.root, directory)
    with directory.events.open("rb") as file:
        journal = Digest.of_file(file)
    made = inert_json(statement(run, journal, directory.seal_digest, outcome).decode())
    if out is None:
        echo(made, nl=False)
        return
    write_whole(out, made.encode())
    _told([out], as_json=False)


@command.command("zenodo")
@click.argument("names", nargs=-1, metavar="[RUN]...")
@_out_option("DIR")
@json_option
def zenodo(names: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Deposit metadata for Zenodo from CITATION.cff: one of the code, one of the data.

    RUN: the runs of the data deposit; default: every sealed run here that is not synthetic. A file
    is used as .zenodo.json in what is uploaded, or given to Zenodo's API.

    \b
    Example:
      kit export zenodo --out build/zenodo
    """
    from analysis.exporting.zenodo import deposits, read_citation

    here = home()
    require_outside_records(out, here)
    require_place(out, directory=True)
    runs = _read(here, names) if names else _measured(here)
    made = deposits(
        read_citation(here.root / "CITATION.cff"),
        [run for _, run in runs],
        _seals(runs),
    )
    with whole_directory(out, list(made)) as fresh:
        for name, data in made.items():
            (fresh / name).write_bytes(data)
    _told([out / name for name in made], as_json)


def _read(here: Home, names: tuple[str, ...]) -> _Runs:
    """The runs of these names, each once. FormatError when synthetic and real ones are mixed."""
    if not all(names):
        raise click.UsageError("an empty name; a run is wanted, by its id or its beginning")
    found = {one.path.absolute(): one for one in (find_records(here, name) for name in names)}
    runs = _all_read(here, list(found.values()))
    require_one_kind([run for _, run in runs])
    return runs


def _measured(here: Home) -> _Runs:
    read = _all_read(here, list(sealed_here(here).values()))
    runs = [one for one in read if not one[1].started.synthetic]
    if not runs:
        raise UnknownRunError(f"no sealed run in {here.data}", remedy="kit reproduce makes one")
    return runs


def _all_read(here: Home, directories: Sequence[RunDirectory]) -> _Runs:
    with heartbeat(say, "reading the records"):
        return [(one, read_run_in_batches(one, here.cache)) for one in directories]


def _seals(runs: _Runs) -> dict[str, str]:
    return {run.run_id: str(one.seal_digest) for one, run in runs if one.is_sealed}


def _told(paths: Sequence[Path], as_json: bool) -> None:
    if as_json:
        print_json({"files": [str(path) for path in paths]})
        return
    for path in paths:
        say(f"written: {path}")
