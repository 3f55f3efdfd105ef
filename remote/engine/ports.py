"""Loopback ports: whether one is free, who holds it, and one that is.

Invariant: "free" means that a server could listen on it now; connections in TIME_WAIT do not count,
since servers set SO_REUSEADDR.
"""

from __future__ import annotations

import socket
from pathlib import Path

from records.errors import PortInUseError

_LISTEN = "0A"  # state of a listening socket in /proc/net/tcp


def port_is_free(host: str, port: int) -> bool:
    """Whether a server could bind and listen on (host, port)."""
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            # Two sockets with SO_REUSEADDR may bind one port; only one may listen.
            probe.listen(1)
        except OSError:
            return False
    return True


def free_port(host: str = "127.0.0.1") -> int:
    """A port free at the time of asking, chosen by the kernel."""
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def require_port_free(host: str, port: int) -> None:
    """PortInUseError, naming the process that listens there where /proc shows it."""
    if not port_is_free(host, port):
        raise PortInUseError(
            f"port {port} on {host} is taken by {holder(port)}",
            remedy="stop that process, then start the same command again: it resumes",
        )


def holder(port: int) -> str:
    """`name (pid N)` of the process listening on a TCP port, or that /proc does not show it."""
    for pid in sorted(listener_pids(port)):
        try:
            name = (Path("/proc") / str(pid) / "comm").read_text().strip()
        except OSError:
            continue
        return f"{name} (pid {pid})"
    return "a process that /proc does not show"


def listener_pids(port: int) -> frozenset[int]:
    """The processes that listen on a TCP port; empty where /proc shows none (another user's)."""
    inodes = {i for table in ("tcp", "tcp6") for i in _listening(Path("/proc/net") / table, port)}
    sockets = {f"socket:[{inode}]" for inode in inodes}
    found = set()
    for entry in Path("/proc").iterdir() if sockets else ():
        if not entry.name.isdigit():
            continue
        try:
            links = {_link(fd) for fd in (entry / "fd").iterdir()}
        except OSError:
            continue
        if sockets & links:
            found.add(int(entry.name))
    return frozenset(found)


def _link(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:  # closed since it was listed, as the one that listed it is
        return ""


def _listening(table: Path, port: int) -> list[str]:
    try:
        rows = table.read_text().splitlines()[1:]
    except FileNotFoundError:
        return []
    fields = [row.split() for row in rows]
    return [f[9] for f in fields if f[3] == _LISTEN and int(f[1].rpartition(":")[2], 16) == port]


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
