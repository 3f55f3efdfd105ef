"""`kit logs`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from kit.options import find_run, home
from records.errors import UnknownRunError
from records.journal import is_busy
from records.run_directory import RunDirectory

_POLL_S = 0.5


@click.command()
@click.argument("run_id", default="")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run stops.")
def command(run_id: str, follow: bool) -> None:
    """Print what a run's harness printed; default: the newest run.

    \b
    Example:
      kit logs -f
    """
    here = home()
    run = find_run(here, run_id)
    log = here.log(run.path.name)
    if not log.exists():
        raise UnknownRunError(f"run {run.path.name} has no log here")
    position = _print_from(log, 0)
    while follow and _runs(run):
        time.sleep(_POLL_S)
        position = _print_from(log, position)


def _runs(run: RunDirectory) -> bool:
    return not run.is_sealed and run.events.exists() and is_busy(run.events)


def _print_from(log: Path, position: int) -> int:
    with log.open("rb") as file:
        file.seek(position)
        data = file.read()
    if data:
        click.echo(data.decode("utf-8", "replace"), nl=False)
    return position + len(data)
