"""Where an SSH host is and how to log in: HOST and ~/.ssh/config in, a frozen destination out.

Invariant: both clients, the kit's own connection and the system's ssh under rsync, take their
settings from the same destination.
"""

from __future__ import annotations

import getpass
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from records.errors import UnknownHostError

_HOST = re.compile(
    r"(?:(?P<user>[A-Za-z0-9._-]+)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[A-Za-z0-9._-]+)"
    r"(?::(?P<port>\d{1,5}))?"
)
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_SSH_PORT = 22


@dataclass(frozen=True, slots=True)
class Destination:
    """One SSH server and the way there. `typed`: as the user wrote it; `jumps`: nearest first."""

    typed: str
    address: str
    port: int
    user: str
    identity_files: tuple[Path, ...]
    identities_only: bool
    jumps: tuple[Destination, ...] = ()

    @property
    def known_as(self) -> str:
        """Its name in a known_hosts file (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT")."""
        return self.address if self.port == _SSH_PORT else f"[{self.address}]:{self.port}"


def read_config() -> paramiko.SSHConfig:
    """~/.ssh/config; an empty one where there is none. UnknownHostError if it cannot be parsed."""
    path = Path("~/.ssh/config").expanduser()
    if not path.is_file():
        return paramiko.SSHConfig()
    try:
        return paramiko.SSHConfig.from_path(str(path))
    except paramiko.ConfigParseError as error:
        raise UnknownHostError(f"{path}: {error}", f"correct {path}") from error


def is_ssh(text: str, config: paramiko.SSHConfig) -> bool:
    """Whether HOST names an SSH server: it says user or port, or is a Host of the configuration."""
    match = _HOST.fullmatch(text)
    if match is None:
        return False
    return bool(match["user"] or match["port"]) or match["host"] in config.get_hostnames()


def resolve(text: str, config: paramiko.SSHConfig) -> Destination:
    """The destination that HOST names, by the configuration's first match for each setting.

    UnknownHostError: HOST does not parse, or the configuration asks for what is not supported.
    """
    return _resolve(text, config, depth=0)


def _resolve(text: str, config: paramiko.SSHConfig, depth: int) -> Destination:
    match = _HOST.fullmatch(text)
    if match is None or depth > 4:
        raise UnknownHostError(f"{text}: not [user@]host[:port]", "HOST=user@host:port")
    name = match["host"].strip("[]")
    found: dict[str, Any] = dict(config.lookup(name))
    if found.get("proxycommand", "none").lower() != "none":
        raise UnknownHostError(
            f"{text}: ~/.ssh/config reaches it by ProxyCommand, which this kit does not run",
            "write the same way as ProxyJump",
        )
    port = int(match["port"] or found.get("port", _SSH_PORT))
    if not 0 < port < 1 << 16:
        raise UnknownHostError(f"{text}: port {port} is none", "HOST=user@host:port")
    jumps = [j.strip() for j in str(found.get("proxyjump", "none")).split(",")]
    return Destination(
        typed=text,
        address=str(found.get("hostname", name)),
        port=port,
        user=match["user"] or str(found.get("user", "")) or getpass.getuser(),
        identity_files=_identities(found.get("identityfile")),
        identities_only=str(found.get("identitiesonly", "no")).lower() == "yes",
        jumps=tuple(_resolve(j, config, depth + 1) for j in jumps if j.lower() != "none"),
    )


def _identities(configured: Any) -> tuple[Path, ...]:
    """The keys that the configuration names, or those of ssh's defaults that are there."""
    if configured:
        return tuple(Path(str(name)).expanduser() for name in configured)
    defaults = (Path("~/.ssh", name).expanduser() for name in _DEFAULT_KEYS)
    return tuple(path for path in defaults if path.is_file())
