"""`kit doctor`."""

from __future__ import annotations

import click

from kit.doctor.examine import choose_runtime, fit, judge, look, unfit
from kit.doctor.needs import needs_of
from kit.doctor.topic import DOCKER, FAIL, WARN, WHEELS
from kit.engine import setup as engine_setup
from kit.options import find_plan, home, json_option, open_host, plan_option
from kit.output import print_json, print_table, say
from records.decode import to_object


@click.command()
@click.argument("host_name", default="", metavar="[HOST]")
@plan_option
@click.option("--runtime", type=click.Choice((DOCKER, WHEELS)), help="Examine for this runtime.")
@click.option(
    "--image", "image_name", default="", help="Which image of the lock; default: its one."
)
@click.option("--accept-new", is_flag=True, help="On first contact, pin the host's key.")
@json_option
def command(
    host_name: str,
    plan_name: str,
    runtime: str | None,
    image_name: str,
    accept_new: bool,
    as_json: bool,
) -> None:
    """Examine a host for a plan before anything is put there; nothing on it is changed.

    Every line says pass, warn or fail, what was found, what follows from it and what to do.

    \b
    Example:
      kit doctor
      kit doctor user@gpu --plan l4-confounds --json
    """
    here = home()
    plan = find_plan(here, plan_name)
    needs = needs_of(here, plan, runtime or "", image_name)
    host = open_host(here, host_name, accept_new=accept_new)
    say(f"{host.name}: looking for what plan {plan.id} needs")
    there = host.home(here).path
    verdicts = judge(look(host, there), needs)
    if needs.runtime != DOCKER:
        facts = engine_setup.with_what_is_brought(host, plan, host.probe(there))
        verdicts += fit(facts, plan, engine_setup.needs(plan))
    chosen = choose_runtime(verdicts, needs)
    if as_json:
        print_json(
            {"plan": plan.id, "runtime": chosen, "verdicts": [to_object(v) for v in verdicts]}
        )
    else:
        print_table(("check", "", "found"), [(v.check, v.status, v.found) for v in verdicts])
        for verdict in verdicts:
            if verdict.status in (WARN, FAIL):
                click.echo(f"\n{verdict.status}: {verdict.check}: {verdict.cause}")
                click.echo(f"  try: {verdict.remedy}")
        click.echo(f"\nruntime: {chosen}")
    failed = [verdict for verdict in verdicts if verdict.status == FAIL]
    if failed:
        raise unfit(host.name, plan, failed)
