"""`kit analyze`: tables from records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import click

from analysis.publish import Study, write_studies
from analysis.reading import sealed_runs
from analysis.spool import Spool, spool
from analysis.study_tables import study_of_runs
from analysis.table import as_object
from kit.commands.named_runs import analyzable
from kit.commands.study_text import shown_text
from kit.heartbeat import heartbeat
from kit.home import Home
from kit.options import home, json_option
from kit.output import echo, json_text, say
from records.errors import UnknownRunError

# More directories than this are told by their number.
_NAMED = 20


@click.command()
@click.argument("names", nargs=-1, metavar="[RUN]...")
@click.option("--paper", is_flag=True, help="Write one run's tables to paper/tables, to commit.")
@json_option
def command(names: tuple[str, ...], paper: bool, as_json: bool) -> None:
    """Print the tables of runs, and write them as Markdown, CSV and LaTeX.

    RUN is a run's id or its beginning, or a path to one or to a directory of them; default: every
    sealed run here that is not synthetic. The chain of each run is verified first. Runs of one
    plan, harness, engine and host are also pooled; those of one plan, whatever their hosts, are one
    study: what was carried out where, what counts, which hosts are apart. A large run is kept in
    .kit/cache, too, in a form that is faster to read again.

    \b
    Example:
      kit analyze
      kit analyze 20261130T115921Z --json
      kit analyze build/demo/records/20261130T120000Z-demo-0a1b2c
      kit analyze build/demo/records
    """
    here = home()
    directories = list(analyzable(here, names)) or list(sealed_runs(here.data))
    with heartbeat(say, "reading the records and computing the tables"):
        made = spool(directories, here.cache, lambda run: bool(names) or not run.started.synthetic)
        with made as read:
            _show(here, read, paper, as_json)


def _show(here: Home, read: Spool, paper: bool, as_json: bool) -> None:
    """Write the tables, one study after the other, and print them."""
    if not read.runs:
        raise UnknownRunError(f"no sealed run in {here.data}", remedy="kit reproduce makes one")
    synthetic = any(run.started.synthetic for run in read.runs)
    out = here.out / ("demo/tables" if synthetic else "tables")
    result = read.alone()
    if paper:
        if synthetic:
            raise click.UsageError("--paper is for measured runs, and one of these is synthetic")
        # Pooled tables change with every new run, so they are not for committing.
        out = here.root / "paper" / "tables"
    else:
        result = chain(result, read.pooled(), study_of_runs(read.runs))
    written: list[Path] = []
    if as_json:
        _print_json(result, out, written)
        return
    for study in result:
        written += write_studies([study], out)
        echo(shown_text(study, out / study.name))
    places = sorted({str(path.parent) for path in written})
    for directory in places if len(places) <= _NAMED else ():
        say(f"written: {directory}")
    if len(places) > _NAMED:
        say(f"written: {len(places)} directories below {out}")


def _print_json(result: Iterable[Study], out: Path, written: list[Path]) -> None:
    """One object, a study at a time: together they may be more than fits in memory."""
    echo('{\n  "studies": [', nl=False)
    for number, study in enumerate(result):
        written += write_studies([study], out)
        value = {
            "name": study.name,
            "runs": list(study.runs),
            "tables": [as_object(table) for table in study.tables],
        }
        echo(",\n" if number else "\n", nl=False)
        echo("".join(_indented(value, "    ")), nl=False)
    files = "".join(_indented([str(path) for path in written], "  ")).lstrip(" ")
    echo(f'\n  ],\n  "files": {files}\n}}')


def _indented(value: object, margin: str) -> Iterator[str]:
    """As `json.dumps` lays it out inside of something else: no line end stands in a string."""
    text = json_text(value)
    yield margin
    yield text.replace("\n", f"\n{margin}")
