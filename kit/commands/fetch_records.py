"""`kit fetch-records`."""

from __future__ import annotations

import click

from kit.fetch import fetch_run
from kit.hosts import parse_host
from kit.launch import jobs
from kit.options import find_run, home, host_option, json_option
from kit.output import print_json, print_table, say
from records.run_directory import RunDirectory, runs_in


@click.command()
@click.argument("run_id", default="")
@host_option
@click.option("--unfinished", is_flag=True, help="Also runs that are not sealed yet.")
@json_option
def command(run_id: str, host_name: str, unfinished: bool, as_json: bool) -> None:
    """Bring the records of sealed runs into records/data, verified; what is here never changes.

    \b
    Example:
      kit fetch-records
      kit fetch-records 20261130t --unfinished
    """
    here, host = home(), parse_host(host_name)
    known = {job.run_id: job for job in jobs(here, say)}
    runs = [find_run(here, run_id)] if run_id else runs_in(here.runs)
    wanted = [r for r in runs if r.path.name in known and (unfinished or r.is_sealed)]
    fetched = [fetch_run(host, r.path, here.data_for(known[r.path.name])) for r in wanted]
    for run in runs:
        _say_skipped(run, known=run.path.name in known, unfinished=unfinished)
    if as_json:
        print_json(
            [
                {
                    "run_id": f.run_id,
                    "directory": str(f.directory),
                    "sealed": f.sealed,
                    "new_bytes": f.new_bytes,
                }
                for f in fetched
            ]
        )
        return
    rows = [(f.run_id, "sealed" if f.sealed else "unfinished", f.new_bytes) for f in fetched]
    print_table(("run", "state", "new bytes"), rows)


def _say_skipped(run: RunDirectory, *, known: bool, unfinished: bool) -> None:
    if not known:
        say(f"{run.path.name}: not started by this kit, left where it is")
    elif not run.is_sealed and not unfinished:
        say(f"{run.path.name}: not sealed yet, left where it is (--unfinished brings it)")
