"""`kit compare-definitions`: what every tool would have reported, from the same records."""

from __future__ import annotations

import click
from tabulate import tabulate

from analysis.definitions import definition
from analysis.measure_tables import definitions_table
from analysis.streaming.large_run import read_run_in_batches
from analysis.table import as_object
from kit.heartbeat import heartbeat
from kit.options import find_records, home, json_option
from kit.output import echo, print_json, say


@click.command()
@click.argument("run", default="")
@json_option
def command(run: str, as_json: bool) -> None:
    """Print every tool's latency quantities over one run: p50, p95, p99 by arm and window.

    RUN is a run's id or its beginning, or a path to one; default: the newest.

    \b
    Example:
      kit compare-definitions
      kit compare-definitions 20261130T115921Z --json
    """
    here = home()
    with heartbeat(say, "reading the records"):
        table = definitions_table([read_run_in_batches(find_records(here, run), here.cache)])
    sources = {row[-1]: definition(row[-1]).source for row in table.rows}
    if as_json:
        print_json({**as_object(table), "sources": sources})
        return
    head = [column.heading for column in table.columns]
    places: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for row in table.rows:
        places.setdefault((row[0], row[1]), []).append(row[2:])
    for (arm, window), rows in places.items():
        echo(f"arm {arm}, window {window}\n")
        echo(tabulate(rows, head[2:], tablefmt="simple", disable_numparse=True))
        echo()
    for note in table.notes:
        echo(note)
    echo("\nSources:")
    for name, source in sources.items():
        echo(f"  {name}: {source}")
