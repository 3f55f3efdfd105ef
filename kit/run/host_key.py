"""Which key a host showed when a run was started there, noted beside the run's job on this machine.

Invariant: a note is a digest with the project's salt and never among the records: a key names a
machine to whoever meets it. A rented address that is given to another machine shows another key
(skypilot issue 1614); that it was accepted since does not make it the one that the run was on.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Protocol, runtime_checkable

from kit.home import Home
from kit.hosts.host import Host
from records.digest import Digest


@runtime_checkable
class Keyed(Protocol):
    """A host that proves itself by a key."""

    def host_key(self) -> str:
        """Algorithm and fingerprint of the key that it showed."""
        ...


def note_key(home: Home, host: Host, run_id: str) -> None:
    """Add a line: when in UTC, and the digest. Nothing for a host without a key."""
    shown: object = host
    if isinstance(shown, Keyed):
        now = datetime.datetime.now(datetime.timezone.utc)
        file = _file(home, host, run_id)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="ascii") as notes:
            notes.write(f"{now:%Y-%m-%dT%H:%M:%SZ} {_digest(home, shown)}\n")


def other_key(home: Home, host: Host, run_id: str) -> str:
    """What to say where the host shows another key than at the run's last start; else ""."""
    shown: object = host
    if not isinstance(shown, Keyed):
        return ""
    try:
        lines = _file(home, host, run_id).read_text(encoding="ascii", errors="replace").splitlines()
    except FileNotFoundError:
        return ""  # started by another machine's kit, or an older one
    when, _, noted = lines[-1].partition(" ") if lines else ("", "", "")
    if not noted or noted == str(_digest(home, shown)):
        return ""
    return (
        f"warning: {host.name} shows another host key than when run {run_id} was started there, "
        f"at {when}: is it still the same machine?"
    )


def _file(home: Home, host: Host, run_id: str) -> Path:
    return host.mirror(home).jobs / f"{run_id}.keys"


def _digest(home: Home, host: Keyed) -> Digest:
    return Digest.of(f"{home.salt()}\0{host.host_key()}".encode())
