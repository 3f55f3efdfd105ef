"""Copy trees between this machine and a host by the system's rsync, over the system's ssh.

Invariant: ssh gets its settings from a file generated out of the same destination as the kit's own
connection, and no key that is not pinned is accepted; what the target holds saves transfer but
never decides the outcome (--checksum).
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kit.ssh.config import Destination
from records.errors import ConnectionLostError, DiskFullError, KitError

_ALIAS = "kit-host"
# rsync(1), "EXIT VALUES": errors of socket, protocol or transport, and timeouts.
_LINE_DROPPED = frozenset({10, 12, 30, 35, 255})
_OPTIONS = (
    "--recursive",
    "--links",
    "--times",
    "--checksum",
    "--partial",
    "--delete",
    "--protect-args",
    "--timeout=60",
)
# An unsealed journal grows; its old part need not travel again.
_DELTA = ("--no-whole-file",)


def is_here() -> bool:
    """Whether this machine has rsync and ssh."""
    return shutil.which("rsync") is not None and shutil.which("ssh") is not None


def ssh_options(destination: Destination, known_hosts: Path) -> str:
    """The text of an ssh_config(5) that leads to the destination as `kit-host`."""
    blocks = []
    names = [f"kit-jump-{n}" for n, _ in enumerate(destination.jumps, 1)]
    for name, hop in zip([*names, _ALIAS], [*destination.jumps, destination], strict=True):
        lines = [
            f"Host {name}",
            f"  HostName {hop.address}",
            f"  HostKeyAlias {hop.known_as}",
            f"  Port {hop.port}",
            f'  User "{hop.user}"',
            f"  IdentitiesOnly {'yes' if hop.identities_only else 'no'}",
            *(f'  IdentityFile "{path}"' for path in hop.identity_files),
        ]
        if name == _ALIAS and names:
            lines.append(f"  ProxyJump {','.join(names)}")
        blocks.append("\n".join(lines))
    blocks.append(
        "Host *\n"
        f'  UserKnownHostsFile "{known_hosts}"\n'
        "  GlobalKnownHostsFile none\n"
        "  StrictHostKeyChecking yes\n"
        "  UpdateHostKeys no\n"
        "  BatchMode yes\n"
        "  ConnectTimeout 15\n"
        "  ServerAliveInterval 15\n"
        "  ServerAliveCountMax 4\n"
    )
    return "\n".join(blocks)


def fetch(options: Path, source: Path, target: Path) -> None:
    """Make the directory `target` here equal `source` there. Errors as `_copy`."""
    target.mkdir(parents=True, exist_ok=True)
    _copy(options, [*_DELTA, f"{_ALIAS}:{source}/", f"{target}/"])


def put(options: Path, source: Path, target: Path) -> None:
    """Make the directory `target` there, which exists, equal `source` here. Errors as `_copy`.

    Not --mkpath: the host's rsync may be older than 3.2.3, which brought it.
    """
    _copy(options, [f"{source}/", f"{_ALIAS}:{target}/"])


def _copy(options: Path, paths: Sequence[str]) -> None:
    """ConnectionLostError: the line dropped. DiskFullError. KitError: what else rsync says."""
    shell = f"ssh -F '{options}'"
    done = subprocess.run(
        ["rsync", *_OPTIONS, "-e", shell, *paths],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode == 0:
        return
    text = done.stderr.decode("utf-8", "replace").strip()
    last = "\n  ".join(text.splitlines()[-6:])
    if "No space left on device" in text:
        raise DiskFullError(f"copying stopped, a disk is full:\n  {last}", "free space, then again")
    if done.returncode in _LINE_DROPPED:
        raise ConnectionLostError(
            f"the connection dropped while copying:\n  {last}",
            "the same command again: it goes on with what has arrived",
        )
    raise KitError(f"rsync ended with status {done.returncode}:\n  {last}", "see rsync(1)")
