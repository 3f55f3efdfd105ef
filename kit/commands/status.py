"""`kit status`."""

from __future__ import annotations

import time
from typing import Any

import click

from kit.follow import duration
from kit.home import Home
from kit.options import find_run, home, json_option
from kit.output import print_json, print_table, say
from kit.run_state import RunState, read_state
from records.errors import UnknownRunError
from records.journal import is_busy
from records.run_directory import RunDirectory, runs_in


@click.command()
@click.argument("run_id", default="")
@json_option
def command(run_id: str, as_json: bool) -> None:
    """Where each run on this machine stands; with RUN_ID, also why boots failed.

    \b
    Example:
      kit status
      kit status 20261130t --json
    """
    here = home()
    runs = [find_run(here, run_id)] if run_id else list(runs_in(here.runs))
    if not runs:
        raise UnknownRunError("no run here yet", "start one: kit reproduce")
    told = [_told(run) for run in runs]
    if as_json:
        print_json(told)
        return
    now_ns = time.monotonic_ns()
    rows = [
        (t["run_id"], t["state"], f"{t['done']}/{t['total']}", t["failed"], _left(run, now_ns))
        for t, run in zip(told, runs, strict=True)
    ]
    print_table(("run", "state", "boots", "failed", "left"), rows)
    if run_id:
        _details(here, told[0])


def _told(run: RunDirectory) -> dict[str, Any]:
    state = read_state(run.events)
    return {
        "run_id": run.path.name,
        "plan": state.plan.id if state.plan else "",
        "state": _word(run, state),
        "boot": state.boot,
        "window": state.window,
        "done": state.done,
        "total": state.total,
        "failed": state.failed,
        "failures": state.failures,
        "void_windows": {name: list(reasons) for name, reasons in state.voids.items()},
    }


def _word(run: RunDirectory, state: RunState) -> str:
    if run.is_sealed:
        return "sealed"
    if not run.events.exists():
        return "not begun"
    return state.phase if is_busy(run.events) else "interrupted"


def _left(run: RunDirectory, now_ns: int) -> str:
    if run.is_sealed or not run.events.exists() or not is_busy(run.events):
        return "-"
    left = read_state(run.events).left_s(now_ns)
    return "-" if left is None else f"about {duration(left)}"


def _details(here: Home, told: dict[str, Any]) -> None:
    for boot, cause in told["failures"].items():
        click.echo(f"\n{boot}: {cause}")
    for window, reasons in told["void_windows"].items():
        click.echo(f"\n{window} is void: {'; '.join(reasons)}")
    if told["state"] == "interrupted":
        say(f"resume it: kit reproduce --plan {told['plan']}")
    say(f"log of the harness: {here.log(told['run_id'])}")
