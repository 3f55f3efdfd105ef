"""`kit plan list` and `kit plan show`."""

from __future__ import annotations

import click

from kit.follow import duration
from kit.options import find_plan, home, json_option
from kit.output import print_json, print_table
from kit.plan_view import expected_s, overview, window_text
from records.plan import boot_order


@click.group()
def command() -> None:
    """Show plans.

    \b
    Example:
      kit plan show smoke-cpu
    """


@command.command("list")
@json_option
def list_plans(as_json: bool) -> None:
    """List the plans of this kit.

    \b
    Example:
      kit plan list
    """
    here = home()
    plans = [find_plan(here, path.stem) for path in sorted(here.plans.glob("*.toml"))]
    if as_json:
        print_json([{"id": p.id, "title": p.title, "digest": str(p.digest)} for p in plans])
        return
    rows = [(p.id, len(boot_order(p)), duration(expected_s(p)), p.title) for p in plans]
    print_table(("plan", "boots", "expected", "title"), rows)


@command.command("show")
@click.argument("name", default="smoke-cpu")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show a plan: arms, order of boots, windows, expected duration, what a host must have.

    \b
    Example:
      kit plan show l4-confounds
      kit plan show my-plan.toml --json
    """
    plan = find_plan(home(), name)
    if as_json:
        print_json(overview(plan))
        return
    click.echo(f"{plan.id}: {plan.title}\n{plan.digest}")
    engine = f"{plan.engine.name} {plan.engine.version}"
    lock = f"images/{plan.engine.lock}" if plan.engine.lock else "none (synthetic)"
    click.echo(f"engine {engine}, lock {lock}; models {', '.join(plan.models)}\n")
    factors = list(plan.arms[0].factors)
    print_table(
        ("arm", "model", "cache", *factors),
        [(a.id, a.model, a.cache, *(a.factors[f] for f in factors)) for a in plan.arms],
    )
    click.echo()
    print_table(("window", "load"), [(w.id, window_text(w)) for w in plan.windows])
    click.echo(f"\norder of boots (seed {plan.seed}):")
    boots = boot_order(plan)
    for block in range(1, plan.blocks + 1):
        click.echo(f"  block {block}: {'  '.join(b.arm for b in boots if b.block == block)}")
    need = plan.requirements
    gpu = f", GPU {need.compute_capability} or above with {need.gpu_memory_mib} MiB"
    click.echo(
        f"\n{len(boots)} boots, about {duration(expected_s(plan))} after installation\n"
        f"needs {need.memory_mib} MiB of memory, {need.disk_mib} MiB of disk"
        f"{', ' + ' '.join(need.cpu_flags) if need.cpu_flags else ''}"
        f"{gpu if need.gpu_memory_mib else ', no GPU'}"
    )
