"""How a fleet is named: `slurm:gpu/user@login`, which a command line says as two options.

Invariant: the composed name holds a `/`, which no name of a host does; so both can stand wherever a
host is named.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from records.errors import UnknownHostError

SLURM, SKY, LOCAL = "slurm", "sky", "local"
_FLEET = re.compile(r"(slurm|sky)(?::([A-Za-z0-9_.,-]+))?")
FORMS = "--fleet slurm, --fleet slurm:PARTITION, --fleet sky or --fleet sky:CLOUD"


class Address(NamedTuple):
    """`part`: a partition of the cluster, or a cloud; `login`: the host its commands run on."""

    kind: str
    part: str
    login: str


def compose(fleet: str, host: str) -> str:
    """The name of a fleet that is reached by `host`. UnknownHostError names the forms."""
    if _FLEET.fullmatch(fleet) is None:
        raise UnknownHostError(f"--fleet {fleet}: no kind of fleet that this kit knows", FORMS)
    return f"{fleet}/{host or LOCAL}"


def parse(name: str) -> Address | None:
    """The fleet that a composed name means; None for a host."""
    fleet, is_fleet, login = name.partition("/")
    match = _FLEET.fullmatch(fleet) if is_fleet else None
    return Address(match[1], match[2] or "", login) if match else None


def spoken(name: str) -> str:
    """The options that name this host or fleet on a command line; "" for this machine."""
    fleet = parse(name)
    if fleet is None:
        return "" if name in ("", LOCAL) else f"--host {name}"
    words = f"--fleet {name.partition('/')[0]}"
    return words if fleet.login in ("", LOCAL) else f"{words} --host {fleet.login}"
