"""`kit status`."""

from __future__ import annotations

from typing import Any

import click

from kit.home import Home
from kit.hosts.host import Host
from kit.options import (
    find_run,
    fleet_option,
    home,
    host_option,
    json_option,
    known_runs,
    match_run,
    open_hosts,
)
from kit.output import echo, print_json, print_table, say
from kit.run.follow import duration
from kit.run.follow_log import last_error
from kit.run.launch import is_queued, is_under_way, resume_command
from kit.run.mirror import refresh_all
from kit.run.state import RunState, read_state
from records.errors import FormatError, SchedulerError, UnknownRunError
from records.run_directory import RunDirectory, runs_in
from records.schema import RunClosed
from records.void_words import reason_text

_UNKNOWN = "unknown"
_AHEAD = ("queued", "starting", _UNKNOWN)


@click.command()
@click.argument("run_id", default="")
@host_option
@fleet_option
@json_option
def command(run_id: str, host_name: str, as_json: bool) -> None:
    """Where each run on a host stands; with RUN_ID, also why boots failed.

    While a cluster's controller does not answer, a run that may be under way is "unknown", told as
    its files have it, and the exit code is 26.

    \b
    Example:
      kit status
      kit status 20261130T115921Z --json
      kit status --host root@203.0.113.7:22022
      kit status --fleet slurm --host me@login
    """
    here = home()
    closed = _closed_runs(here)
    told, away = [], list[SchedulerError]()
    for host in open_hosts(here, host_name):
        seen = refresh_all(host, here)
        runs = [_found(closed, seen, run_id)] if run_id else known_runs(seen)
        rows = [(run, _told(here, host, closed.get(run.path.name, run), away)) for run in runs]
        # A job that nothing was made of, as where a scheduler refused it, is told when asked for.
        told += [one for run, one in rows if run_id or run.path.exists() or one["state"] in _AHEAD]
    if not run_id and not host_name:
        known = {one["run_id"] for one in told}
        told += [_of_records("-", run) for name, run in closed.items() if name not in known]
    if not told:
        raise UnknownRunError("no run here yet", "start one: kit reproduce")
    if as_json:
        print_json(told)
    else:
        keys = ("host", "run_id", "state", "boots", "failed")
        cells = [(*(t[key] for key in keys), _left(t["left_s"])) for t in told]
        print_table(("host", "run", "state", "boots", "failed", "left"), cells)
        if run_id:
            _details(seen, told[0], host)
    if away:
        number = f"{len(away)} run{'s' if len(away) > 1 else ''}"
        raise SchedulerError(
            f"{away[0].message}; {number} may be under way, shown as far as the files tell",
            away[0].remedy,
        )


def _found(closed: dict[str, RunDirectory], seen: Home, word: str) -> RunDirectory:
    """The run that is meant: one begun by this kit, or one that was closed among the records."""
    begun = {run.path.name: run for run in known_runs(seen)}
    if any(name.lower().startswith(word.lower()) for name in begun):
        return find_run(seen, word)
    remedy = "kit status lists the runs; kit reproduce starts one"
    return closed[match_run(tuple(closed), word, remedy)]


def _closed_runs(here: Home) -> dict[str, RunDirectory]:
    """The runs of the records that were closed: often carried here, so that no host knows them."""
    places = (here.data, here.out / "demo" / "records")
    return {run.path.name: run for data in places for run in runs_in(data) if run.closed}


def _of_records(host: str, run: RunDirectory) -> dict[str, Any]:
    """A run that was closed: its records tell all there is, and no host is asked."""
    return _plain(host, run, read_state(run.events))


def _plain(host: str, run: RunDirectory, state: RunState) -> dict[str, Any]:
    return {
        "host": host,
        "run_id": run.path.name,
        "plan": state.plan.id if state.plan else "",
        "state": state.phase,
        "boot": state.boot,
        "window": state.window,
        "boots": f"{state.done}/{state.total}",
        "done": state.done,
        "total": state.total,
        "failed": state.failed,
        "left_s": None,
        "failures": state.failures,
        "error": "",
        "void_windows": {name: list(reasons) for name, reasons in state.voids.items()},
    }


def _told(here: Home, host: Host, run: RunDirectory, away: list[SchedulerError]) -> dict[str, Any]:
    """What is known of a run. `away`: grows where its scheduler does not say whether it runs."""
    if run.closed:
        known = host.mirror(here).run(run.path.name).exists()
        return _of_records(host.name if known else "-", run)
    try:
        state, damage = read_state(run.events), ""
    except FormatError as error:
        say(f"warning: {error.message}; its bytes stay as they are, see: kit audit")
        state, damage = RunState(), "damaged"
    try:
        under_way = not run.is_sealed and not damage and is_under_way(here, host, run.path.name)
        word = damage or _word(here, host, run, state, under_way=under_way)
    except SchedulerError as error:
        away.append(error)
        return {**_plain(host.name, run, state), "state": _UNKNOWN}
    return {
        **_plain(host.name, run, state),
        "state": word,
        "left_s": state.left_s(host.monotonic_ns()) if under_way else None,
        "error": "" if under_way or run.is_sealed else _error(host.mirror(here), run.path.name),
    }


def _error(seen: Home, run_id: str) -> str:
    """What the harness that is gone said last of why."""
    log = seen.log(run_id)
    return last_error(log.read_text("utf-8", "replace"))[0] if log.is_file() else ""


def _word(here: Home, host: Host, run: RunDirectory, state: RunState, *, under_way: bool) -> str:
    if run.is_sealed:
        return "sealed"
    if under_way and is_queued(here, host, run.path.name):
        return "queued"
    if not run.events.exists():
        return "starting" if under_way else "not begun"
    return state.phase if under_way else "interrupted"


def _left(left_s: int | None) -> str:
    return f"about {duration(left_s)}" if left_s else "-"


def _details(seen: Home, told: dict[str, Any], host: Host) -> None:
    for boot, cause in told["failures"].items():
        echo(f"\n{boot}: {cause}")
    for window, reasons in told["void_windows"].items():
        echo(f"\n{window} is void: {'; '.join(map(reason_text, reasons))}")
    if told["error"]:
        echo(f"\nthe harness ended: {told['error']}")
    if told["state"] == "interrupted":
        say(f"resume it: {resume_command(host, told['run_id'])}")
    if told["state"] != RunClosed.WORD:
        say(f"log of the harness: {seen.log(told['run_id'])}")
