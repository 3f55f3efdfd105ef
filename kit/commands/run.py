"""`kit run`."""

from __future__ import annotations

import click

from kit.follow import follow
from kit.options import (
    blocks_option,
    find_job,
    find_plan,
    home,
    host_option,
    json_option,
    new_option,
    open_host,
    plan_option,
    require_alone,
    run_option,
)
from kit.output import print_json, say
from kit.reproduce import begin, require_complete
from kit.run_state import count
from kit.runtime_options import docker_choice, runtime_options


@click.command()
@plan_option
@run_option
@host_option
@click.option("--detach", is_flag=True, help="Return as soon as the harness has started.")
@runtime_options
@blocks_option
@new_option
@json_option
def command(
    plan_name: str,
    run_id: str,
    host_name: str,
    detach: bool,
    blocks: tuple[int, ...],
    new: bool,
    as_json: bool,
) -> None:
    """Start a plan's run, or resume the one that has not ended, and follow it.

    The run goes on when this terminal closes. Ctrl-C stops it in order; it stays resumable.

    \b
    Example:
      kit run --plan smoke-cpu
      kit run --detach && kit status
      kit run --run 20261130T115921Z
    """
    here = home()
    host = open_host(here, host_name)
    job = None
    if run_id:
        require_alone(new=new, blocks=blocks)
        job = find_job(here, host, run_id)
        plan, blocks = job.plan, job.blocks
    else:
        plan = find_plan(here, plan_name)
    docker = docker_choice(here, plan)
    started, watch = begin(here, host, plan, say, new=new, blocks=blocks, docker=docker, resume=job)
    run_id = started.job.run_id
    if detach:
        if as_json:
            print_json({"run_id": run_id, "pid": started.running.pid})
        else:
            click.echo(run_id)
        return
    ending = follow(host.mirror(here), started, watch, say)
    if as_json:
        print_json({"run_id": run_id, "completed": ending.completed, "failed": ending.failed})
    else:
        click.echo(f"{run_id}: {count(ending.completed, 'boot')} completed, {ending.failed} failed")
    require_complete(ending)
