"""Options that several verbs share."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from kit.fleet.address import compose
from kit.fleet.address import parse as parse_fleet
from kit.fleet.opening import open_fleet
from kit.home import Home
from kit.hosts.host import Host
from kit.hosts.names import host_names, parse_host
from kit.output import say
from kit.planning import prompt_files
from kit.planning.plan_file import load_plan
from kit.registry.tag import parse_registry
from kit.run.launch import read_job
from kit.run.mirror import job_ids, refresh_jobs, refresh_run
from records.errors import (
    ClosedRunError,
    FormatError,
    PlanError,
    UnknownHostError,
    UnknownRunError,
)
from records.job import Job
from records.plan import Plan, require_blocks
from records.run_directory import RunDirectory, runs_in

F = TypeVar("F", bound=Callable[..., Any])

_ACCEPT_NEW = "kit.accept_new"
_FLEET = "kit.fleet"
DEFAULT_PLAN = "smoke-cpu"
_BLOCK = re.compile("[0-9]{1,9}")


def plan_option(function: F) -> F:
    """--plan NAME|FILE."""
    return click.option(
        "--plan",
        "plan_name",
        default=DEFAULT_PLAN,
        show_default=True,
        metavar="NAME|FILE",
        help="A plan of this kit by name, or a TOML file.",
    )(function)


def host_option(function: F) -> F:
    """--host HOST, and --accept-new, which `open_host` looks for."""
    named = click.option(
        "--host", "host_name", default="", metavar="HOST", callback=_compose_host,
        help="Where to run; default: here.",
    )  # fmt: skip
    accept = click.option(
        "--accept-new",
        is_flag=True,
        expose_value=False,
        callback=_note_accept_new,
        help="On first contact, pin the host's key without asking.",
    )
    return named(accept(function))


def fleet_option(function: F) -> F:
    """--fleet slurm[:PARTITION]|sky[:CLOUD], composed with --host, its login node."""
    return click.option(
        "--fleet", default="", is_eager=True, expose_value=False, callback=_note_fleet,
        metavar="FLEET",
        help="On a cluster: slurm[:PARTITION], --host then names its login node; "
        "or in a cloud: sky[:CLOUD].",
    )(function)  # fmt: skip


def _note_fleet(ctx: click.Context, _param: click.Parameter, value: str) -> None:
    ctx.meta[_FLEET] = value


def _compose_host(ctx: click.Context, _param: click.Parameter, value: str) -> str:
    fleet = ctx.meta.get(_FLEET, "")
    if not fleet:
        return value
    (login, *others) = host_names(value)
    if others:
        raise click.UsageError("--fleet takes one --host: the login node")
    return compose(fleet, login)


def _note_accept_new(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    ctx.meta[_ACCEPT_NEW] = value


def open_host(home: Home, name: str, *, accept_new: bool = False) -> Host:
    """The host that --host names, met as the command line and the terminal allow.

    UnknownHostError where it names several.
    """
    (name, *others) = host_names(name)
    if others:
        raise UnknownHostError(
            f"{name} and {len(others)} more: this command takes one host",
            f"--host {name}, and so on for each",
        )
    fleet = parse_fleet(name)
    if fleet is not None:
        return open_fleet(home, name, open_host(home, fleet.login, accept_new=accept_new))
    if name in ("", "local"):
        return parse_host(name)
    from kit.ssh.known_hosts import Meeting  # the cryptography behind it takes long to import

    accept_new = accept_new or bool(click.get_current_context().meta.get(_ACCEPT_NEW, False))
    ask = partial(click.confirm, err=True) if sys.stdin.isatty() else None
    return parse_host(name, Meeting(home.known_hosts, accept_new, ask, say))


def open_hosts(home: Home, names: str) -> list[Host]:
    """Every host that --host names."""
    return [open_host(home, name) for name in host_names(names)]


def blocks_option(function: F) -> F:
    """--blocks 1,3."""
    return click.option(
        "--blocks",
        metavar="N,N",
        callback=_parse_blocks,
        help="Only these blocks of the plan; default: all.",
    )(function)


def _parse_blocks(
    _ctx: click.Context, _param: click.Parameter, text: str | None
) -> tuple[int, ...]:
    """Empty where the option is not given."""
    if text is None:
        return ()
    words = text.split(",")
    blocks = tuple(int(word) for word in words if _BLOCK.fullmatch(word))
    if len(blocks) < len(words) or blocks != tuple(sorted(set(blocks))):
        raise click.BadParameter("want numbers, ascending, as in 1,3")
    return blocks


def require_blocks_of(plan: Plan, blocks: tuple[int, ...]) -> None:
    """UsageError unless the plan has these blocks: told before anything is begun."""
    try:
        require_blocks(plan, blocks)
    except FormatError as error:
        raise click.UsageError(error.message) from error


def new_option(function: F) -> F:
    """--new."""
    return click.option(
        "--new", is_flag=True, help="Begin a new run even if one of this plan is unfinished."
    )(function)


def json_option(function: F) -> F:
    """--json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")(
        function
    )


def registry_name(_ctx: click.Context, _param: click.Parameter, text: str) -> str:
    """What --mirror names, "" where it was left out. BadParameter: no registry has such a name."""
    try:
        return parse_registry(text) if text else ""
    except FormatError as error:
        raise click.BadParameter(f"{error.message}; {error.remedy}") from error


def home() -> Home:
    """The project this command works on."""
    return Home.find(os.environ)


def find_plan(home: Home, name: str) -> Plan:
    """A plan by its name in kit/plans, or from a file. PlanError lists what there is."""
    if name.endswith(".toml") or os.sep in name:
        return _kept(home, Path(name))
    known = sorted(path.stem for path in home.plans.glob("*.toml"))
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "name one of these, or a file: ./my.toml"
        raise PlanError(f"no plan {name!r}; there are: {', '.join(known)}", hint)
    return _kept(home, home.plans / f"{name}.toml")


def _kept(home: Home, path: Path) -> Plan:
    plan = load_plan(path)
    prompt_files.keep(home, plan, path.parent)
    return plan


def named_run(_ctx: click.Context, _param: click.Parameter, word: str | None) -> str:
    """What names a run, "" where it was left out.

    BadParameter for an empty name, which a shell makes of a variable without a value: it would
    mean the newest run, or none.
    """
    if word is not None and not word.strip():
        raise click.BadParameter("an empty name; name a run")
    return word or ""


def run_option(function: F) -> F:
    """--run RUN."""
    return click.option(
        "--run", "run_id", metavar="RUN", callback=named_run,
        help="Go on with this unfinished run, by the plan it was begun with.",
    )(function)  # fmt: skip


def require_alone(*, new: bool, blocks: tuple[int, ...]) -> None:
    """UsageError where --run stands beside what the run itself decides."""
    if new or blocks:
        raise click.UsageError("--run goes on with a run as it was begun: no --new, no --blocks")


def match_run(run_ids: Sequence[str], word: str, remedy: str) -> str:
    """The run id that `word` names: whole, or its beginning in any case; "" for the newest.

    `run_ids` from old to new. UnknownRunError where none begins so, or several do.
    """
    found = [run_id for run_id in run_ids if run_id.lower().startswith(word.lower())]
    exact = [run_id for run_id in found if run_id == word]
    if exact or len(found) == 1 or (found and not word):
        return (exact or found)[-1]
    if found:
        raise UnknownRunError(
            f"{word!r} begins the names of several runs: {', '.join(found)}",
            "write more of the one meant",
        )
    raise UnknownRunError(f"no run {word!r} here" if word else "no run here yet", remedy)


def find_run(home: Home, word: str) -> RunDirectory:
    """A run that this kit started, as `match_run` finds it; "": the newest that has begun."""
    begun = [run for run in runs_in(home.runs) if not word]
    runs = {run.path.name: run for run in begun or known_runs(home)}
    return runs[match_run(tuple(runs), word, "kit status lists the runs; kit reproduce starts one")]


def known_runs(home: Home) -> list[RunDirectory]:
    """Every run, from old to new; one whose harness has only just started is its job so far."""
    names = {run.path.name for run in runs_in(home.runs)} | set(job_ids(home))
    return [RunDirectory(home.run(name)) for name in sorted(names)]


def find_records(home: Home, word: str) -> RunDirectory:
    """A run of the records, as `match_run` finds it, or the run directory at path `word`."""
    if word and RunDirectory(Path(word)).events.is_file():
        return RunDirectory(Path(word))
    runs = {run.path.name: run for run in runs_in(home.data) if run.events.is_file()}
    remedy = f"name a run directory, or one of: {', '.join(runs)}"
    if not runs:
        remedy = f"kit reproduce makes a run; none is in {home.data} yet. Or name a run directory"
    for run in runs_in(home.out / "demo" / "records"):
        if word and run.path.name.lower().startswith(word.lower()):
            remedy = f"a synthetic run is named by its directory: {run.path}"
    return runs[match_run(tuple(runs), word, remedy)]


def find_job(home: Home, host: Host, word: str) -> Job:
    """The job of an unfinished run on the host. UnknownRunError: none of that name, or sealed.

    ClosedRunError: its records were closed here.
    """
    here = refresh_jobs(host, home)
    run_id = match_run(tuple(job_ids(here)), word, "kit status lists the runs")
    refresh_run(host, home, run_id)
    if RunDirectory(here.run(run_id)).is_sealed:
        raise UnknownRunError(
            f"run {run_id} is sealed: nothing is left to do", f"kit fetch-records {run_id}"
        )
    job = read_job(here.job(run_id))
    if RunDirectory(home.data_for(job) / run_id).closed:
        raise ClosedRunError(
            f"run {run_id} was closed, its host being gone: nothing can be added to it",
            "kit reproduce --new, with --blocks for those that it lacks",
        )
    return job
