"""`kit fetch-records`."""

from __future__ import annotations

from pathlib import Path

import click

from kit.options import (
    find_run,
    fleet_option,
    home,
    host_option,
    json_option,
    named_run,
    open_host,
    open_hosts,
)
from kit.output import print_json, print_table, say
from kit.run.carried_runs import carried_runs
from kit.run.delete_on_host import delete_there
from kit.run.fetch import Fetched, already_home, carried_data, fetch_run, require_lists
from kit.run.host_key import other_key
from kit.run.launch import jobs
from kit.run.mirror import refresh_all
from records.checkpoint import read_runs
from records.digest import Digest
from records.run_directory import RunDirectory, runs_in


@click.command()
@click.argument("run_id", required=False, callback=named_run)
@host_option
@fleet_option
@click.option("--unfinished", is_flag=True, help="Also runs that are not sealed yet.")
@click.option(
    "--from",
    "carried",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="A run directory that was carried here by other means, or a directory of such.",
)
@click.option(
    "--delete-remote",
    is_flag=True,
    help="Then delete each sealed run there, once the host's hashes are those of what is here.",
)
@json_option
def command(
    run_id: str,
    host_name: str,
    unfinished: bool,
    carried: Path | None,
    delete_remote: bool,
    as_json: bool,
) -> None:
    """Bring the records of sealed runs into records/data, verified; what is here never changes.

    A sealed run that is here already is passed over; one that is named is compared with its host's
    again. Nothing is deleted where they come from unless --delete-remote asks for it.

    \b
    Example:
      kit fetch-records
      kit fetch-records 20261130T115921Z --unfinished
      kit fetch-records --from carried/20261130T120000Z-sm90-pilot-0a1b2c
      kit fetch-records --from carried --unfinished
      kit fetch-records --host root@203.0.113.7:22022 --delete-remote
    """
    here = home()
    if carried is not None:
        if delete_remote:
            raise click.UsageError("--from and --delete-remote: what was carried stays")
        local, where = open_host(here, "local"), carried.resolve()
        found = carried_runs(where)
        if found[0].path != where and not unfinished:  # one that is named is taken as it is
            for run in found:
                _say_skipped(run, known=True, unfinished=False)
            found = tuple(run for run in found if run.is_sealed)
        taken = [fetch_run(local, r.path, carried_data(here, r.path), say=say) for r in found]
        _report(taken, as_json)
        return
    fetched: list[Fetched] = []
    listed: dict[Path, dict[str, Digest]] = {}
    for host in open_hosts(here, host_name):
        seen, there = refresh_all(host, here), host.home(here)
        known = {job.run_id: job for job in jobs(seen, say)}
        present = set(host.names(there.runs))
        runs = [find_run(seen, run_id)] if run_id else list(runs_in(seen.runs))
        for run in runs:
            if run.path.name not in present:  # what was seen of it is kept in the copy here
                say(f"{run.path.name}: no longer on {host.name}")
        runs = [run for run in runs if run.path.name in present]
        wanted = [r for r in runs if r.path.name in known and (unfinished or r.is_sealed)]
        for run in wanted:
            name = run.path.name
            data = here.data_for(known[name])
            if data not in listed:
                require_lists(data)
                listed[data] = {leaf.run_id: leaf.seal for leaf in read_runs(data)}
            # One that is named is brought and compared again, byte by byte.
            whole = None if run_id else already_home(run, RunDirectory(data / name), listed[data])
            if whole is None and (warning := other_key(here, host, name)):
                say(warning)
            fetched.append(whole or fetch_run(host, there.run(name), data, seen, say))
            if delete_remote and fetched[-1].sealed:
                delete_there(here, host, fetched[-1])
                say(f"{name}: deleted on {host.name}; its records are here")
        for run in runs:
            _say_skipped(run, known=run.path.name in known, unfinished=unfinished)
    _report(fetched, as_json)


def _report(fetched: list[Fetched], as_json: bool) -> None:
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
