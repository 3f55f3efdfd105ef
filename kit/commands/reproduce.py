"""`kit reproduce`: the run, then the tables over its records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from analysis.pools import head_of
from analysis.publish import Study, write_studies
from analysis.reading import Run, sealed_runs
from analysis.spool import spool
from analysis.streaming.large_run import read_run_in_batches
from kit.commands.study_text import shown_text
from kit.commands.windows_used import windows_line
from kit.fleet.carry_out import Shared, carry_out, require_all
from kit.fleet.opening import fleet_of
from kit.fleet.ssh_fleet import SshFleet
from kit.hosts.names import host_names
from kit.options import (
    blocks_option,
    find_job,
    find_plan,
    fleet_option,
    home,
    host_option,
    json_option,
    new_option,
    open_host,
    open_hosts,
    plan_option,
    require_alone,
    require_blocks_of,
    run_option,
)
from kit.output import echo, print_json, say
from kit.planning.rehearsal import rehearsal, shortened
from kit.run.reproduce import Reproduced, reproduce, require_complete
from kit.runtime_options import docker_choice, runtime_options
from records.errors import KitError
from records.run_directory import RunDirectory

# So many runs are named one by one; more by the directory that holds them.
_FEW = 3


@click.command()
@plan_option
@run_option
@host_option
@fleet_option
@runtime_options
@blocks_option
@new_option
@click.option(
    "--rehearse", is_flag=True,
    help="The plan's arms and windows against the reference server: synthetic, short.",
)  # fmt: skip
@json_option
def command(
    plan_name: str,
    run_id: str,
    host_name: str,
    blocks: tuple[int, ...],
    new: bool,
    rehearse: bool,
    as_json: bool,
) -> None:
    """Do the whole job: install, run, bring the records home, write the tables.

    A run of the same plan that has not ended is resumed. Ctrl-C stops in order. Several hosts share
    the blocks of the plan; none stops another.

    \b
    Example:
      kit reproduce
      kit reproduce --plan smoke-cpu --json
      kit reproduce --host root@203.0.113.7:22022 --accept-new
      kit reproduce --plan smoke-cpu --host host1,host2
      kit reproduce --plan l4-confounds --fleet slurm:gpu --host me@login
      kit reproduce --run 20261130T115921Z
      kit reproduce --plan sm90-confounds --rehearse --blocks 1
    """
    here = home()
    names = host_names(host_name)
    job = None
    if run_id:
        require_alone(new=new, blocks=blocks)
        job = find_job(here, open_host(here, host_name), run_id)
        plan, blocks = job.plan, job.blocks
    else:
        plan = find_plan(here, plan_name)
        require_blocks_of(plan, blocks)
    if rehearse:
        if run_id or len(names) > 1:
            raise click.UsageError("--rehearse takes a plan and one host")
        plan, whole = rehearsal(plan), plan
        say(shortened(whole, plan))
    docker = docker_choice(here, plan)
    fleet = fleet_of(here, open_host(here, names[0]), plan, say, new, blocks, job, docker)
    if fleet is not None:
        shared = carry_out(fleet, say)
    elif len(names) == 1:
        host = open_host(here, names[0])
        shared = Shared(
            (reproduce(here, host, plan, say, new=new, blocks=blocks, docker=docker, resume=job),),
            (),
        )
    else:
        hosts = open_hosts(here, host_name)
        shared = carry_out(SshFleet(here, hosts, plan, plan_name, say, new=new, blocks=blocks), say)
    told = _show(shared.done, as_json=as_json)
    if as_json:
        print_json(told[0] if len(names) == 1 and fleet is None else told)
    require_all(shared, plan_name)
    for one in shared.done:
        require_complete(one.ending)


def _show(done: Sequence[Reproduced], *, as_json: bool) -> list[dict[str, Any]]:
    """Write the tables, print them unless JSON is wanted, and return what JSON says."""
    if not done:
        return []
    say("reading the records, writing the tables")
    tables = done[0].tables
    files: dict[str, list[str]] = {one.ending.run_id: [] for one in done}

    def write(study: Study, of: Iterable[str], *, shown: bool = True) -> None:
        written = [str(path) for path in write_studies([study], tables)]
        for run_id in files.keys() & set(of):
            files[run_id] += written
        if shown and not as_json:
            echo(shown_text(study, tables / study.name))

    with spool(map(_directory, done), home().cache, lambda _: True) as read:
        # These runs' own tables first: damage in a neighbour must not cost what was just measured.
        for study in read.alone():
            write(study, study.runs)
        for run, directory in _beside(done):
            read.add(run, directory)
        together: dict[str, set[str]] = {}
        for study in read.pooled():
            if files.keys() & set(study.runs):
                write(study, study.runs)
                for run_id in study.runs:
                    together.setdefault(run_id, set()).update(study.runs)
        for study in read.alone():
            if study.name in together.keys() - files.keys():
                write(study, together[study.name], shown=False)
        runs = tuple(read.runs)
    if not as_json:
        for one in done:
            echo(f"records: {one.fetched.directory}")
        echo(f"tables:  {tables}")
        few = len(files) <= _FEW
        named = " ".join(files) if few else str(done[0].fetched.directory.parent)
        say(f"as one page: kit report {named}")
        line = windows_line(run for run in runs if run.run_id in files)
        if line:
            echo(line)
    return [
        {
            "run_id": one.ending.run_id,
            "records": str(one.fetched.directory),
            "completed": one.ending.completed,
            "failed": one.ending.failed,
            "tables": sorted(files[one.ending.run_id]),
            "first_window_after": [
                {"step": step.what, "took_ns": step.took_ns} for step in one.steps
            ],
        }
        for one in done
    ]


def _directory(one: Reproduced) -> RunDirectory:
    return RunDirectory(one.fetched.directory)


def _beside(done: Sequence[Reproduced]) -> Iterator[tuple[Run, RunDirectory]]:
    """What these runs may be pooled with: the sealed runs beside them, synthetic or real alike.

    One whose records do not hold is named and left out; one that begins as none of these does is
    not read at all.
    """
    own = {one.fetched.directory for one in done}
    heads = {None, *(head_of(_directory(one)) for one in done)}
    for directory in sealed_runs(done[0].fetched.directory.parent):
        if directory.path in own or head_of(directory) not in heads:
            continue
        try:
            run = read_run_in_batches(directory, home().cache)
        except KitError as error:
            say(f"warning: {directory.path.name} is left out of the tables: {error.message}")
        except OSError as error:
            say(f"warning: {directory.path.name} is left out of the tables: {error}")
        else:
            yield run, directory
            continue
        say("  try: kit audit")
