"""`kit close`."""

from __future__ import annotations

import time
from dataclasses import asdict
from importlib.metadata import version

import click

from kit.heartbeat import heartbeat
from kit.options import find_records, home, json_option
from kit.output import print_json, say
from kit.run.close import Closed, Reason, close_run
from kit.run.state import count
from records.limits import printable

_MOST = 500


def _words(_ctx: click.Context, _param: click.Parameter, text: str) -> str:
    """One line that a person can read."""
    words = " ".join(text.split())
    if not words or len(words) > _MOST or printable(words) != words:
        raise click.BadParameter(f"say how the host went, in words, at most {_MOST} characters")
    return words


@click.command()
@click.argument("run")
@click.option(
    "--because",
    required=True,
    metavar="TEXT",
    callback=_words,
    help="How the host went: it is recorded, and published with the run.",
)
@click.option(
    "--host-gone",
    is_flag=True,
    help="The host that this kit began it on is gone for good, whatever was last seen of it.",
)
@json_option
def command(run: str, because: str, host_gone: bool, as_json: bool) -> None:
    """Close an unfinished run of the records whose host is gone for good: a lease over, a machine
    taken away.

    One event is appended that says so, and the run is sealed and listed as it came home. Only its
    blocks whose every boot came to an end count; what is missing belongs to another run. It shows
    everywhere as "closed: host gone", since its engine was bound before its boots and not after
    them. A run whose host is there is never closed: kit reproduce --run goes on with it.

    \b
    Example:
      kit close 20261130T170838Z-sm90-confounds-70604b --because "the lease was over"
    """
    here = home()
    directory = find_records(here, run)
    why = Reason(because, version("spec-fp8-reproduction-kit"), time.time_ns(), host_gone)
    with heartbeat(say, "verifying the records that came home"):
        closed = close_run(here, directory, why)
    if as_json:
        print_json(
            {
                "run_id": closed.directory.name,
                "directory": str(closed.directory),
                "event": asdict(closed.event),
                "blocks": list(closed.blocks),
                "carried_out": list(closed.carried_out),
                "missing": list(closed.missing),
                "failed": closed.failed,
                "listed": closed.listed,
            }
        )
        return
    for line in _told(closed):
        click.echo(printable(line))


def _told(closed: Closed) -> list[str]:
    event, name = closed.event, closed.directory.name
    failures = f"; {count(closed.failed, 'boot')} failed, which counts" if closed.failed else ""
    if closed.carried_out:
        done = f"{_listed(closed.carried_out)} of {count(len(closed.blocks), 'block')}{failures}"
    else:
        done = f"none of {count(len(closed.blocks), 'block')}: what it holds are records{failures}"
    return [
        f"{name}: {event.WORD}, sealed after {count(event.came_home, 'event')}",
        f"  because      {event.reason}",
        f"  carried out  {done}",
        f"  missing      {_listed(closed.missing) or 'none'}",
        f"  interrupted  {event.interrupted or 'no boot'}",
        f"  not bound after its boots: {', '.join(event.not_bound_after) or 'nothing'}",
        f"commit {closed.directory}, RUNS and CHECKPOINT together; then: kit audit",
    ]


def _listed(blocks: tuple[int, ...]) -> str:
    return f"block{'s' if len(blocks) > 1 else ''} {', '.join(map(str, blocks))}" if blocks else ""
