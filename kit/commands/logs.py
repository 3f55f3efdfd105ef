"""`kit logs`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from kit.home import Home
from kit.hosts.host import Host
from kit.options import find_run, fleet_option, home, host_option, open_host
from kit.output import echo
from kit.run.launch import is_under_way
from kit.run.mirror import refresh_all, refresh_run
from records.errors import UnknownRunError
from records.run_directory import RunDirectory

_POLL_S = 0.5


@click.command()
@click.argument("run_id", default="")
@host_option
@fleet_option
@click.option("-f", "--follow", is_flag=True, help="Go on until the run stops.")
def command(run_id: str, host_name: str, follow: bool) -> None:
    """Print what a run's harness printed; default: the newest run.

    \b
    Example:
      kit logs -f
      kit logs 20261130T115921Z
      kit logs -f --host root@203.0.113.7:22022
    """
    here = home()
    host = open_host(here, host_name)
    seen = refresh_all(host, here)
    run = find_run(seen, run_id)
    log = seen.log(run.path.name)
    while follow and not log.is_file() and _runs(here, host, run):  # a task without a node yet
        time.sleep(_POLL_S)
        refresh_run(host, here, run.path.name)
    if not log.is_file() and _runs(here, host, run):
        raise UnknownRunError(
            f"run {run.path.name} has printed nothing yet", "wait for it: the same command with -f"
        )
    if not log.is_file():
        raise UnknownRunError(
            f"run {run.path.name} has no log here", "kit logs RUN, with another run of kit status"
        )
    position = _print_from(log, 0)
    while follow and _runs(here, host, run):
        time.sleep(_POLL_S)
        refresh_run(host, here, run.path.name)
        position = _print_from(log, position)


def _runs(here: Home, host: Host, run: RunDirectory) -> bool:
    return not run.is_sealed and is_under_way(here, host, run.path.name)


def _print_from(log: Path, position: int) -> int:
    with log.open("rb") as file:
        file.seek(position)
        data = file.read()
    if data:
        echo(data.decode("utf-8", "replace"), nl=False)
    return position + len(data)
