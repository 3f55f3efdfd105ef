"""`kit doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kit.doctor.examine import choose_runtime, examine, fit, unfit
from kit.doctor.needs import needs_of, on_host
from kit.doctor.processors import time_processors
from kit.doctor.topic import DOCKER, FAIL, PASS, WARN, WHEELS, Verdict
from kit.engine import setup as engine_setup
from kit.fleet.address import parse as parse_fleet
from kit.home import Home
from kit.hosts.host import Host
from kit.image_lock import LOCK_NAME
from kit.options import find_plan, home, json_option, open_host, plan_option, registry_name
from kit.output import echo, print_json, print_table, say
from records.decode import to_object

if TYPE_CHECKING:
    from kit.ssh.known_hosts import Pin


@click.command()
@click.argument("host_name", default="", metavar="[HOST]")
@plan_option
@click.option("--runtime", type=click.Choice((DOCKER, WHEELS)), help="Examine for this runtime.")
@click.option(
    "--image", "image_name", default="", help="Which image of the lock; default: its one."
)
@click.option(
    "--image-lock", "lock", envvar="KIT_IMAGE_LOCK", type=click.Path(path_type=Path),
    metavar="FILE", help=f"Another lock than images/{LOCK_NAME}.",
)  # fmt: skip
@click.option(
    "--mirror", envvar="KIT_MIRROR", default="", callback=registry_name, metavar="REGISTRY",
    help="The registry that the image was, or will be, pulled from.",
)  # fmt: skip
@click.option("--accept-new", is_flag=True, help="On first contact, pin the host's key.")
@json_option
def command(
    host_name: str,
    plan_name: str,
    runtime: str | None,
    image_name: str,
    lock: Path | None,
    mirror: str,
    accept_new: bool,
    as_json: bool,
) -> None:
    """Examine a host for a plan before anything is put there; nothing on it is changed.

    Every line says pass, warn or fail, what was found, what follows from it and what to do. For a
    plan that needs a GPU, and where Docker holds an image already, a container is started with the
    GPU and removed again; nothing is pulled for that. The processors are timed for three seconds at
    most, unless a run is under way there.

    \b
    Example:
      kit doctor
      kit doctor user@gpu --plan l4-confounds --json
    """
    here = home()
    plan = find_plan(here, plan_name)
    needs = needs_of(here, plan, runtime or "", image_name, lock, mirror)
    host = open_host(here, host_name, accept_new=accept_new)
    say(f"{host.name}: looking for what plan {plan.id} needs")
    there = host.home(here).path
    needs = on_host(needs, host, host.home(here))
    keys = _host_keys(here, host)
    verdicts = (*(_key_verdict(pin) for pin in keys), *examine(host, there, needs))
    if parse_fleet(host_name) is None:  # a login node's processors measure nothing
        say(f"{host.name}: timing its processors, each alone and together")
        verdicts += (time_processors(host, here.root),)
    if needs.runtime != DOCKER:
        facts = engine_setup.with_what_is_brought(host, plan, host.probe(there))
        verdicts += fit(facts, plan, engine_setup.needs(plan))
    chosen = choose_runtime(verdicts, needs)
    if as_json:
        print_json(
            {
                "plan": plan.id,
                "runtime": chosen,
                "host_keys": [to_object(pin) for pin in keys],
                "verdicts": [to_object(v) for v in verdicts],
            }
        )
    else:
        print_table(("check", "", "found"), [(v.check, v.status, v.found) for v in verdicts])
        for verdict in verdicts:
            if verdict.status in (WARN, FAIL):
                echo(f"\n{verdict.status}: {verdict.check}: {verdict.cause}")
                echo(f"  try: {verdict.remedy}")
        echo(f"\nruntime: {chosen}")
    failed = [verdict for verdict in verdicts if verdict.status == FAIL]
    if failed:
        raise unfit(host.name, plan, failed)


def _host_keys(here: Home, host: Host) -> tuple[Pin, ...]:
    """The keys that were accepted on the way to the host, nearest first; none of this machine."""
    if not host.place:
        return ()
    from kit.ssh.host import SshHost  # the cryptography behind it takes long to import
    from kit.ssh.known_hosts import pins

    if not isinstance(host, SshHost):
        return ()
    hops = (*host.destination.jumps, host.destination)
    return tuple(pin for hop in hops for pin in pins(here.known_hosts, hop.known_as))


def _key_verdict(pin: Pin) -> Verdict:
    return Verdict("host-key", PASS, f"{pin.host} {pin.shown}")
