"""`kit close`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import click

from kit.heartbeat import heartbeat
from kit.options import find_records, home, json_option, named_run
from kit.output import echo, print_json, say
from kit.planning.plan_file import load_plan
from kit.run.close import Closed, Reason, close_run
from kit.run.state import count
from records.errors import FormatError
from records.limits import printable
from records.plan import Plan
from records.run_directory import RunDirectory
from records.schema import RunStarted

_MOST = 500


def _words(_ctx: click.Context, _param: click.Parameter, text: str) -> str:
    """One line that a person can read."""
    words = " ".join(text.split())
    if not words or len(words) > _MOST or printable(words) != words:
        raise click.BadParameter(f"say how the host went, in words, at most {_MOST} characters")
    return words


@click.command()
@click.argument("run", callback=named_run)
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
      kit close 20250102T030405Z-my-plan-0a1b2c --because "the lease was over"
    """
    here = home()
    directory = find_records(here, run)
    why = Reason(because, version("spec-fp8-reproduction-kit"), time.time_ns(), host_gone)
    with heartbeat(say, "verifying the records that came home"):
        closed = close_run(here, directory, why, say)
    left = left_to_another(_plan(directory), closed.missing, here.plans)
    if as_json:
        print_json(
            {
                "run_id": closed.directory.name,
                "directory": str(closed.directory),
                "event": asdict(closed.event),
                "blocks": list(closed.blocks),
                "carried_out": list(closed.carried_out),
                "missing": list(closed.missing),
                "left_to_another": left,
                "failed": closed.failed,
                "listed": closed.listed,
            }
        )
        return
    for line in _told(closed, left):
        echo(line)


def left_to_another(plan: Plan, missing: Sequence[int], plans: Path) -> list[str]:
    """How another run carries the missing blocks out, and whether by the plan that there is now.

    `plans`: the kit's own plans, of which the one of this name may have changed since.
    """
    if not missing:
        return []
    blocks = ",".join(map(str, missing))
    lines = [f"for what is missing: kit reproduce --new --plan {plan.id} --blocks {blocks}"]
    path = plans / f"{plan.id}.toml"
    if not path.is_file():
        lines.append(f"but kit/plans holds no plan {plan.id}: name the file that it was in")
    elif (now := load_plan(path).digest) != plan.digest:
        lines.append(
            f"but kit/plans holds another plan {plan.id} now ({str(now)[:19]}; this run's was "
            f"{str(plan.digest)[:19]}): a run of it does not complete this one"
        )
    return lines


def _plan(run: RunDirectory) -> Plan:
    started = next(run.read()).event
    if not isinstance(started, RunStarted):
        raise FormatError(f"{run.path} does not begin with run.started")
    return started.plan


def _told(closed: Closed, left: list[str]) -> list[str]:
    event, name = closed.event, closed.directory.name
    whole = f"of this run's {count(len(closed.blocks), 'block')}"
    failures = f"; {count(closed.failed, 'boot')} failed, which counts" if closed.failed else ""
    if closed.carried_out:
        done = f"{len(closed.carried_out)} {whole}: {', '.join(map(str, closed.carried_out))}"
    else:
        done = f"none {whole}: what it holds are records"
    return [
        f"{name}: {event.WORD}, sealed after {count(event.came_home, 'event')}",
        f"  because      {event.reason}",
        f"  carried out  {done}{failures}",
        f"  missing      {_listed(closed.missing) or 'none'}",
        f"  interrupted  {event.interrupted or 'no boot'}",
        f"  not bound after its boots: {', '.join(event.not_bound_after) or 'nothing'}",
        f"commit {closed.directory}, RUNS and CHECKPOINT together; then: kit audit",
        *left,
    ]


def _listed(blocks: tuple[int, ...]) -> str:
    return f"block{'s' if len(blocks) > 1 else ''} {', '.join(map(str, blocks))}" if blocks else ""
