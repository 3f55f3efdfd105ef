"""`kit reproduce`: the run, then the tables over its records."""

from __future__ import annotations

import click

from analysis.publish import Study, studies, write_studies
from analysis.reading import read_run, sealed_runs
from kit.commands.study_text import study_text
from kit.options import (
    blocks_option,
    find_plan,
    home,
    host_option,
    json_option,
    new_option,
    open_host,
    plan_option,
)
from kit.output import print_json, say
from kit.reproduce import Reproduced, reproduce, require_complete


@click.command()
@plan_option
@host_option
@blocks_option
@new_option
@json_option
def command(
    plan_name: str, host_name: str, blocks: tuple[int, ...], new: bool, as_json: bool
) -> None:
    """Do the whole job: install, run, bring the records home, write the tables.

    A run of the same plan that has not ended is resumed. Ctrl-C stops in order.

    \b
    Example:
      kit reproduce
      kit reproduce --plan smoke-cpu --json
      kit reproduce --host root@203.0.113.7:22022 --accept-new
    """
    here = home()
    plan = find_plan(here, plan_name)
    done = reproduce(here, open_host(here, host_name), plan, say, new=new, blocks=blocks)
    say("reading the records, writing the tables")
    found = _studies(done)
    files = write_studies(found, done.tables)
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
        for study in found:
            if done.ending.run_id in study.runs:
                click.echo(study_text(study))
        click.echo(f"records: {done.fetched.directory}\ntables:  {done.tables}")
    require_complete(done.ending)


def _studies(done: Reproduced) -> list[Study]:
    """This run, and what it may be pooled with: the runs beside it, synthetic or real alike."""
    beside = sealed_runs(done.fetched.directory.parent)
    return studies([read_run(directory) for directory in beside])
