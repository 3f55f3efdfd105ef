"""`kit calibrate`."""

from __future__ import annotations

import click

from kit.calibrate import Asked, calibrate, concurrencies, require_within
from kit.options import find_plan, home, json_option, open_host, plan_option
from kit.output import echo, print_json, print_table, say
from records.cpu_list import parse_cpus
from records.decode import to_object


@click.command()
@click.argument("host_name", default="", metavar="[HOST]")
@plan_option
@click.option("--concurrency", type=click.IntRange(1), multiple=True, help="Default: the plan's.")
@click.option("--client-cpus", default="", help="Processors for the client, such as 14,15.")
@click.option("--accept-new", is_flag=True, help="On first contact, pin the host's key.")
@click.option("--user-stamps", is_flag=True, help="Stamp as where the kernel gives no stamps.")
@json_option
def command(
    host_name: str,
    plan_name: str,
    concurrency: tuple[int, ...],
    client_cpus: str,
    accept_new: bool,
    user_stamps: bool,
    as_json: bool,
) -> None:
    """Measure the client on a host against a server whose send times are known.

    Every run does this at its head; this verb does it without a run. An error beyond the plan's
    bound is told by the exit code.

    \b
    Example:
      kit calibrate
      kit calibrate user@gpu --plan l4-confounds --json
    """
    here = home()
    plan = find_plan(here, plan_name)
    asked = Asked(concurrency or concurrencies(plan), parse_cpus(client_cpus), user_stamps)
    host = open_host(here, host_name, accept_new=accept_new)
    events = calibrate(here, host, plan, asked, say)
    bound_ns = plan.bounds.calibrated_p99_ns
    if as_json:
        print_json(
            {
                "plan": plan.id,
                "bound_ns": bound_ns,
                "calibrated": [
                    {**to_object(e), "error_ns": e.bound_ns, "within": e.bound_ns <= bound_ns}
                    for e in events
                ],
            }
        )
    else:
        head = (
            "concurrency", "chunks", "error p50 ms", "p99 ms", "max ms", "stamps", "merged %",
            "server late p99 ms", "capacity chunks/s", f"bound {bound_ns / 1e6:.3f} ms",
        )  # fmt: skip
        rows = [
            (
                e.concurrency,
                e.chunks,
                *(f"{ns / 1e6:.4f}" for ns in (e.error_p50_ns, e.error_p99_ns, e.error_max_ns)),
                e.report.stamps,
                f"{100 * e.report.merged / max(e.report.chunks, 1):.3f}",
                f"{e.server_late_p99_ns / 1e6:.4f}",
                e.capacity_chunks_per_s,
                "within" if e.bound_ns <= bound_ns else f"beyond: {e.bound_ns / 1e6:.4f}",
            )
            for e in events
        ]
        print_table(head, rows)
        if any(e.report.stamps == "user" for e in events):
            echo("no kernel stamps here: the largest error counts, not the 99th percentile")
    require_within(plan, events)
