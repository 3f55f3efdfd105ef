"""`kit stop`."""

from __future__ import annotations

import time

import click

from kit.home import Home
from kit.hosts.host import Host, Running
from kit.options import find_run, fleet_option, home, host_option, known_runs, named_run, open_host
from kit.output import echo, say
from kit.run.launch import is_under_way, resume_command, running_harness
from kit.run.mirror import refresh_all, refresh_run
from records.errors import UnknownRunError
from records.run_directory import RunDirectory

_POLL_S = 0.2


@click.command()
@click.argument("run_id", required=False, callback=named_run)
@host_option
@fleet_option
@click.option("--all", "every", is_flag=True, help="Every run under way on this host or cluster.")
def command(run_id: str, host_name: str, every: bool) -> None:
    """Stop a run in order: its boot is marked as interrupted, and it stays resumable.

    Without RUN_ID: the run that is under way, where there is just one.

    \b
    Example:
      kit stop
      kit stop 20261130T115921Z
      kit stop --host root@203.0.113.7:22022
      kit stop --all --fleet slurm --host me@login
    """
    here = home()
    host = open_host(here, host_name)
    seen = refresh_all(host, here)
    words = _active(here, host, seen) if every else [run_id or _only_active(here, host, seen)]
    stopping = [_interrupted(here, host, find_run(seen, word)) for word in words]
    for run, running in stopping:
        name = run.path.name
        say(f"run {name}: waiting for the harness to mark its boot and stop the engine")
        while running.exit_status() is None:
            time.sleep(_POLL_S)
        refresh_run(host, here, name)
        word = "has ended" if run.is_sealed else f"stopped; resume it: {resume_command(host, name)}"
        echo(f"run {name} {word}")


def _interrupted(here: Home, host: Host, run: RunDirectory) -> tuple[RunDirectory, Running]:
    running = running_harness(here, host, run.path.name)
    if running is None:
        raise UnknownRunError(f"run {run.path.name} is not running", "kit status")
    running.interrupt()
    return run, running


def _only_active(here: Home, host: Host, seen: Home) -> str:
    """The one run under way. UnknownRunError where there is none, or more than one."""
    active = _active(here, host, seen)
    if len(active) > 1:
        raise UnknownRunError(
            f"{len(active)} runs are under way: {', '.join(active)}", f"kit stop {active[-1]}"
        )
    return active[0]


def _active(here: Home, host: Host, seen: Home) -> list[str]:
    """The runs under way. UnknownRunError where there is none."""
    names = [run.path.name for run in known_runs(seen) if not run.is_sealed]
    active = [name for name in names if is_under_way(here, host, name)]
    if not active:
        raise UnknownRunError("no run is under way", "kit status")
    return active
