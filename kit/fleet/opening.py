"""Open the cluster or cloud that a name means, as a host and as a fleet.

Invariant: what a kind of fleet needs is imported only when one of that kind is named.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from kit.fleet.address import SLURM, parse
from records.errors import UnknownHostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kit.docker.choice import DockerChoice
    from kit.fleet.queue_fleet import QueueFleet
    from kit.home import Home
    from kit.host import Host
    from records.job import Job
    from records.plan import Plan


def open_fleet(home: Home, name: str, login: Host) -> Host:
    """The fleet of this composed name, reached by `login`."""
    address = parse(name)
    if address is None or address.kind != SLURM:
        raise UnknownHostError(f"{name}: no fleet that this version opens", "--fleet slurm")
    from kit.slurm.cluster_host import SlurmHost
    from kit.slurm.site import read_site

    site = read_site(home, os.environ)
    return SlurmHost(login, replace(site, partition=address.part or site.partition), name)


def fleet_of(
    home: Home,
    host: Host,
    plan: Plan,
    say: Callable[[str], None],
    new: bool,
    blocks: tuple[int, ...],
    resume: Job | None,
    docker: DockerChoice | None,
) -> QueueFleet | None:
    """The plan on this host where that is a fleet; None where it is one machine."""
    if parse(host.name) is None:
        return None
    from kit.fleet.queue_fleet import QueueFleet
    from kit.slurm.cluster_host import SlurmHost
    from kit.slurm.slurm_queue import SlurmQueue

    assert isinstance(host, SlurmHost)  # noqa: S101 - the only kind that open_fleet opens
    queue = SlurmQueue(home, host, plan, docker, say)
    return QueueFleet(home, host, plan, queue, say, new=new, blocks=blocks, resume=resume)
