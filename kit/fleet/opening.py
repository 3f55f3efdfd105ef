"""Open the cluster or cloud that a name means, as a host and as a fleet.

Invariant: what a kind of fleet needs is imported only when one of that kind is named.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from kit.fleet.address import FORMS, LOCAL, SKY, parse
from records.errors import UnknownHostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from kit.docker.choice import DockerChoice
    from kit.fleet.queue_fleet import Queue, QueueFleet
    from kit.home import Home
    from kit.hosts.host import Host
    from records.job import Job
    from records.plan import Plan


def open_fleet(home: Home, name: str, login: Host) -> Host:
    """The fleet of this composed name, reached by `login`."""
    address = parse(name)
    if address is None:
        raise UnknownHostError(f"{name}: no kind of fleet that this kit knows", FORMS)
    if address.kind == SKY:
        from kit.sky.cloud import SkyPilot
        from kit.sky.cloud_host import SkyHost
        from kit.sky.site import read_site as read_sky

        if address.login != LOCAL:
            raise UnknownHostError(f"{name}: SkyPilot is asked from this machine", "no --host")
        sky = read_sky(home, os.environ)
        return SkyHost(sky, SkyPilot(sky), name, address.part)
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

    return QueueFleet(
        home, host, plan, _queue(home, host, plan, say, docker), say,
        new=new, blocks=blocks, resume=resume,
    )  # fmt: skip


def _queue(
    home: Home, host: Host, plan: Plan, say: Callable[[str], None], docker: DockerChoice | None
) -> Queue:
    from kit.sky.cloud_host import SkyHost
    from kit.sky.sky_queue import SkyQueue
    from kit.slurm.cluster_host import SlurmHost
    from kit.slurm.slurm_queue import SlurmQueue

    if isinstance(host, SkyHost):
        return SkyQueue(home, host, plan, docker, say)
    assert isinstance(host, SlurmHost)  # noqa: S101 - the other kind that open_fleet opens
    return SlurmQueue(home, host, plan, docker, say)
