"""`kit stop`."""

from __future__ import annotations

import time

import click

from kit.launch import running_harness
from kit.mirror import refresh_all, refresh_run
from kit.options import find_run, home, host_option, open_host
from kit.output import say
from records.errors import UnknownRunError

_POLL_S = 0.2


@click.command()
@click.argument("run_id", default="")
@host_option
def command(run_id: str, host_name: str) -> None:
    """Stop a run in order: its boot is marked as interrupted, and it stays resumable.

    \b
    Example:
      kit stop
      kit stop --host root@203.0.113.7:22022
    """
    here = home()
    host = open_host(here, host_name)
    run = find_run(refresh_all(host, here), run_id)
    name = run.path.name
    running = running_harness(here, host, name)
    if running is None:
        raise UnknownRunError(f"run {name} is not running", "kit status")
    running.interrupt()
    say(f"run {name}: waiting for the harness to mark its boot and stop the engine")
    while running.exit_status() is None:
        time.sleep(_POLL_S)
    refresh_run(host, here, name)
    word = "has ended" if run.is_sealed else "stopped; resume it with the command that started it"
    click.echo(f"run {name} {word}")
