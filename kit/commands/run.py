"""`kit run`."""

from __future__ import annotations

import click

from kit.fleet.carry_out import Shared, require_all, until_ended
from kit.fleet.opening import fleet_of
from kit.fleet.protocol import Fleet
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
    plan_option,
    require_alone,
    require_blocks_of,
    run_option,
)
from kit.output import echo, print_json, say
from kit.run.follow import Ending, follow
from kit.run.reproduce import begin, require_complete
from kit.run.state import count
from kit.runtime_options import docker_choice, runtime_options


@click.command()
@plan_option
@run_option
@host_option
@fleet_option
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
      kit run --plan l4-confounds --fleet slurm:gpu --host me@login --detach
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
        require_blocks_of(plan, blocks)
    docker = docker_choice(here, plan)
    fleet = fleet_of(here, host, plan, say, new, blocks, job, docker)
    if fleet is not None:
        _on_fleet(fleet, plan_name, detach=detach, as_json=as_json)
        return
    started, watch = begin(here, host, plan, say, new=new, blocks=blocks, docker=docker, resume=job)
    run_id = started.job.run_id
    if detach:
        if as_json:
            print_json({"run_id": run_id, "pid": started.running.pid})
        else:
            echo(run_id)
        return
    ending = follow(host.mirror(here), started, watch, say)
    if as_json:
        print_json({"run_id": run_id, "completed": ending.completed, "failed": ending.failed})
    else:
        echo(f"{run_id}: {count(ending.completed, 'boot')} completed, {ending.failed} failed")
    require_complete(ending)


def _on_fleet(fleet: Fleet, plan_name: str, *, detach: bool, as_json: bool) -> None:
    """Submit and return, or follow every share to its end."""
    if detach:
        fleet.submit()
        if as_json:
            print_json([{"run_id": run_id} for run_id in fleet.run_ids])
        else:
            echo("\n".join(fleet.run_ids))
        return
    outcomes = until_ended(fleet, say)
    told = [
        {"run_id": o.run_id, "completed": o.completed, "failed": o.failed}
        for o in outcomes
        if o.has_ended
    ]
    if as_json:
        print_json(told)
    else:
        for one in told:
            echo(f"{one['run_id']}: {one['completed']} completed, {one['failed']} failed")
    require_all(Shared((), tuple(o for o in outcomes if not o.has_ended)), plan_name)
    for o in outcomes:
        require_complete(Ending(o.run_id, o.completed, o.failed))
