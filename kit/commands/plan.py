"""`kit plan list`, `kit plan show`, `kit plan cost` and `kit plan power`."""

from __future__ import annotations

import re
from collections.abc import Set
from decimal import Decimal, InvalidOperation

import click

from analysis.claims import arms_of_claims, compared_pairs
from analysis.not_begun import named
from analysis.plan_order import PlanOrder
from kit.commands import plan_power
from kit.doctor.needs import needs_of
from kit.options import blocks_option, find_plan, home, json_option, require_blocks_of
from kit.output import echo, print_json, print_table, say
from kit.parts import Parts
from kit.planning.plan_checks import obstacles
from kit.planning.plan_cost import Cost, Tariff, cost_of, once_s, rows_by_claim
from kit.planning.plan_view import expected_s, lease_text, overview, window_text
from kit.planning.stays import stays
from kit.run.campaign import deal
from kit.run.follow import duration
from kit.run.state import count
from records.plan import Plan, boot_order


@click.group(cls=Parts)
def command() -> None:
    """Show plans. kit/plans/README.md tells how to write one.

    \b
    Example:
      kit plan show smoke-cpu
    """


command.add_command(plan_power.command)


@command.command("list")
@json_option
def list_plans(as_json: bool) -> None:
    """List the plans of this kit, and whether each can run on this machine as things stand.

    \b
    Example:
      kit plan list
    """
    here = home()
    plans = [find_plan(here, path.stem) for path in sorted(here.plans.glob("*.toml"))]
    why = {plan.id: list(obstacles(here, plan)) for plan in plans}
    if as_json:
        print_json(
            [
                {
                    "id": p.id,
                    "title": p.title,
                    "digest": str(p.digest),
                    "obstacles": why[p.id],
                }
                for p in plans
            ]
        )
        return
    rows = [
        (p.id, len(boot_order(p)), duration(expected_s(p)), _yes(not why[p.id]), p.title)
        for p in plans
    ]
    print_table(("plan", "boots", "expected", "runs here", "title"), rows)
    for plan_id, reasons in why.items():
        if reasons:
            echo(f"\n{plan_id} cannot run here:")
        for reason in reasons:
            echo(f"  - {reason}")


@command.command("show")
@click.argument("name", default="smoke-cpu")
@click.option(
    "--minutes", type=click.IntRange(min=1), default=25, show_default=True,
    help="How long a host is there, for a plan that tells its setup time.",
)  # fmt: skip
@blocks_option
@json_option
def show(name: str, minutes: int, blocks: tuple[int, ...], as_json: bool) -> None:
    """Show a plan: arms, order of boots, windows, expected duration, what a host must have.

    With --blocks only these: their arms, boots and duration; --json tells the whole plan.

    \b
    Example:
      kit plan show l4-confounds
      kit plan show sm90-confounds --minutes 25 --blocks 6,7
      kit plan show kit/plans/demo.toml --json
    """
    here = home()
    plan = find_plan(here, name)
    require_blocks_of(plan, blocks)
    for reason in obstacles(here, plan):
        say(f"warning: {reason}")
    if as_json:
        print_json(overview(plan))
        return
    echo(f"{plan.id}: {plan.title}\n{plan.digest}")
    engine = f"{plan.engine.name} {plan.engine.version}"
    lock = f"images/{plan.engine.lock}" if plan.engine.lock else "none (synthetic)"
    echo(f"engine {engine}, lock {lock}; models {', '.join(plan.models)}\n")
    factors = list(plan.arms[0].factors)
    boots = boot_order(plan, blocks)
    arms = [arm for arm in plan.arms if arm.id in {boot.arm for boot in boots}]
    print_table(
        ("arm", "model", "cache", *factors),
        [(a.id, a.model, a.cache, *(a.factors[f] for f in factors)) for a in arms],
    )
    echo()
    print_table(("window", "load"), [(w.id, window_text(w)) for w in plan.windows])
    echo(f"\norder of boots (seed {plan.seed}):")
    for block in blocks or range(1, plan.blocks + 1):
        echo(f"  block {block}: {'  '.join(b.arm for b in boots if b.block == block)}")
    _show_pairs(plan, {b.block for b in boots})
    need = plan.requirements
    gpu = f", GPU {need.compute_capability} or above with {need.gpu_memory_mib} MiB"
    echo(
        f"\n{count(len(boots), 'boot')}, about {duration(expected_s(plan, blocks))} "
        f"after installation{_of_blocks(plan, blocks)}\n"
        f"needs {need.memory_mib} MiB of memory, {need.disk_mib} MiB of disk"
        f"{', ' + ' '.join(need.cpu_flags) if need.cpu_flags else ''}"
        f"{gpu if need.gpu_memory_mib else ', no GPU'}"
    )
    if plan.estimates.setup_s:
        echo(f"\nwhich of {'these' if blocks else 'the'} blocks a host holds:")
        for line in lease_text(plan, minutes, blocks):
            echo(f"  {line}")


def _show_pairs(plan: Plan, blocks: Set[int]) -> None:
    """Within which blocks arms are compared, where not all blocks hold all of them."""
    held = {arm.id: {n for n in blocks if arm in plan.arms_in(n)} for arm in plan.arms}
    if all(where in (set(), blocks) for where in held.values()):
        return
    shown = [
        (one.id, two.id, factor, len(held[one.id] & held[two.id]))
        for one, two, factor in compared_pairs(plan)
        if held[one.id] and held[two.id]
    ]
    echo("\narms that differ in one factor are compared within the blocks that hold both:")
    order = PlanOrder([plan])
    rows = [
        (*row, named(held[row[0]] & held[row[1]]) if row[3] else "no block in common")
        for row in sorted(shown, key=lambda row: (-row[3], order.arm(row[0]), order.arm(row[1])))
    ]
    print_table(("arm", "and", "factor", "boots of each", "in"), rows)


def _of_blocks(plan: Plan, blocks: tuple[int, ...]) -> str:
    """What part of the plan that is, where it is not all of it."""
    if not blocks:
        return ""
    return f"; {count(len(blocks), 'block')} of {plan.blocks}, {len(boot_order(plan))} boots in all"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


_MOST_PER_HOUR = 1_000_000
_MOST_HOSTS = 10_000


def _price(_ctx: click.Context, _param: click.Parameter, text: str) -> Decimal:
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or not 0 <= price <= _MOST_PER_HOUR:
        raise click.BadParameter(f"want a price per hour, as in 0.80; at most {_MOST_PER_HOUR}")
    return price


_LEASE = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,6})min)?(?:(\d{1,8})s)?")


def _lease(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    """Seconds; None where the option is not given."""
    if text is None:
        return None
    match = _LEASE.fullmatch(text.replace(" ", ""))
    hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
    total_s = hours * 3600 + minutes * 60 + seconds
    if not total_s:
        raise click.BadParameter("want a time, as in 30min, 2h, 1h30min or 1800s")
    return total_s


def _shares(plan: Plan, tariff: Tariff, hosts: int, lease_s: int | None) -> list[tuple[int, ...]]:
    """The blocks of each host: as many as it holds, or dealt as `kit reproduce` deals them."""
    if lease_s:
        return [one.blocks for one in stays(plan, lease_s, once_s(plan, tariff))]
    dealt = deal(range(1, plan.blocks + 1), [str(n) for n in range(hosts)])
    return [share.blocks for share in dealt]


@command.command("cost")
@click.argument("name", default="smoke-cpu")
@click.option("--price", required=True, callback=_price, metavar="PER_HOUR", help="As in 0.80.")
@click.option(
    "--link-mbps", default=500, show_default=True, type=click.IntRange(min=1),
    help="The rented host's downlink in Mbit/s.",
)  # fmt: skip
@click.option(
    "--hosts", type=click.IntRange(1, _MOST_HOSTS),
    help="How many hosts share the blocks, in turn; default: one host takes them all.",
)  # fmt: skip
@click.option(
    "--lease", "lease_s", callback=_lease, metavar="TIME",
    help="How long each host is there, as in 30min or 1h30min: tells how many that takes.",
)  # fmt: skip
@json_option
def cost(
    name: str, price: Decimal, link_mbps: int, hosts: int | None, lease_s: int | None, as_json: bool
) -> None:
    """What a plan costs at a price per hour: pull, boots, windows, total; by arm and by claim.

    By the plan's own estimates and the sizes in the locks. Each host pays its own setup, and the
    first boots of its own arms. A claim's price is that of measuring it alone, on those hosts that
    hold an arm of it; in one run the claims share their arms.

    \b
    Example:
      kit plan cost l4-confounds --price 0.80
      kit plan cost sm90-confounds --price 3 --lease 30min
      kit plan cost l4-confounds --price 0.80 --hosts 4
    """
    if hosts and lease_s:
        raise click.UsageError("--hosts and --lease each tell how the blocks are shared: give one")
    here = home()
    plan = find_plan(here, name)
    needs = needs_of(here, plan)
    tariff = Tariff(price, link_mbps, needs.layers_bytes, needs.models_bytes)
    found = cost_of(plan, tariff, _shares(plan, tariff, hosts or 1, lease_s))
    claims = rows_by_claim(found, arms_of_claims(plan), tariff)
    if as_json:
        print_json(_cost_object(plan.id, found, tariff, claims))
        return
    echo(f"{plan.id} at {price} per hour, {link_mbps} Mbit/s\n")
    print_table(
        ("part", "count", "time", "cost"),
        [(i.what, i.count, duration(i.seconds), tariff.money(i.seconds)) for i in found.items]
        + [("total", "", duration(found.seconds), tariff.money(found.seconds))],
    )
    if len(found.hosts) > 1 or lease_s:
        echo(f"\n{count(len(found.hosts), 'host')}, each with an empty cache:")
        print_table(
            ("host", "holds", "boots", "time", "cost"),
            [
                (n, named(one.blocks), one.boots, duration(one.seconds), tariff.money(one.seconds))
                for n, one in enumerate(found.hosts, 1)
            ],
        )
    if not needs.layers_bytes and plan.engine.lock.startswith("images"):
        echo("the pull is not counted: the image lock is not resolved; try: kit images lock")
    echo()
    print_table(
        ("arm", "boots", "time", "cost"),
        [(a.arm, a.boots, duration(a.seconds), tariff.money(a.seconds)) for a in found.arms],
    )
    if claims:
        echo()
        print_table(
            ("claim, alone", "arms", "time", "cost"),
            [(claim, arms, duration(s), money) for claim, arms, s, money in claims],
        )


def _cost_object(
    plan: str, found: Cost, tariff: Tariff, claims: list[tuple[str, str, int, Decimal]]
) -> dict[str, object]:
    def priced(seconds: int) -> dict[str, object]:
        return {"seconds": seconds, "cost": str(tariff.money(seconds))}

    return {
        "plan": plan,
        "price_per_hour": str(tariff.price),
        "link_mbps": tariff.link_mbps,
        "items": [{"what": i.what, "count": i.count, **priced(i.seconds)} for i in found.items],
        "hosts": [
            {"blocks": list(one.blocks), "boots": one.boots, **priced(one.seconds)}
            for one in found.hosts
        ],
        "arms": [{"arm": a.arm, "boots": a.boots, **priced(a.seconds)} for a in found.arms],
        "claims": [
            {"claim": claim, "arms": arms.split(", "), **priced(seconds)}
            for claim, arms, seconds, _ in claims
        ],
        "total": priced(found.seconds),
    }
