"""`kit reproduce`: the run, then the tables over its records."""

from __future__ import annotations

from pathlib import Path

import click

from analysis.publish import write_run_tables, write_tables
from analysis.reading import read_run
from kit.hosts import parse_host
from kit.options import find_plan, home, host_option, json_option, new_option, plan_option
from kit.output import print_json, say
from kit.reproduce import Reproduced, reproduce, require_complete
from records.run_directory import RunDirectory


@click.command()
@plan_option
@host_option
@new_option
@json_option
def command(plan_name: str, host_name: str, new: bool, as_json: bool) -> None:
    """Do the whole job: install, run, bring the records home, write the tables.

    A run of the same plan that has not ended is resumed. Ctrl-C stops in order.

    \b
    Example:
      kit reproduce
      kit reproduce --plan smoke-cpu --json
    """
    here = home()
    plan = find_plan(here, plan_name)
    done = reproduce(here, parse_host(host_name), plan, say, new=new)
    say("writing the tables")
    files = _tables(done)
    if as_json:
        print_json(
            {
                "run_id": done.ending.run_id,
                "records": str(done.fetched.directory),
                "completed": done.ending.completed,
                "failed": done.ending.failed,
                "tables": [str(path) for path in files],
            }
        )
    else:
        for path in files:
            if path.suffix == ".md" and path.parent.name == done.ending.run_id:
                click.echo(path.read_text(encoding="utf-8"))
        click.echo(f"records: {done.fetched.directory}\ntables:  {done.tables}")
    require_complete(done.ending)


def _tables(done: Reproduced) -> list[Path]:
    directory = RunDirectory(done.fetched.directory)
    run = read_run(directory)
    if run.started.synthetic:
        return write_run_tables(run, done.tables)
    return write_tables(directory.path.parent, done.tables)
