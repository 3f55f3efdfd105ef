"""Where an SSH host is and how to log in: HOST and ~/.ssh/config in, a frozen destination out.

Invariant: both clients, the kit's own connection and the system's ssh under rsync, take their
settings from the same destination.
"""

from __future__ import annotations

import getpass
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import paramiko

from records.errors import UnknownHostError

_HOST = re.compile(
    # A user of a domain is domain\\user or user@domain.
    r"(?:(?P<user>[A-Za-z0-9_.][A-Za-z0-9._+$\\-]*(?:@[A-Za-z0-9.-]+)?)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[A-Za-z0-9_][A-Za-z0-9._-]*)"
    r"(?::(?P<port>\d{1,5}))?"
)
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_SSH_PORT = 22
_DEEPEST = 16  # as ssh has it (readconf.c, READCONF_MAX_DEPTH)


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
        return paramiko.SSHConfig.from_text("\n".join(_with_included(path, "Host *", depth=0)))
    except (paramiko.ConfigParseError, OSError, UnicodeDecodeError) as error:
        raise UnknownHostError(f"{path}: {error}", f"correct {path}") from error


def _with_included(path: Path, block: str, depth: int) -> Iterator[str]:
    """The lines of a configuration, with those of the files that it includes in their place.

    ssh_config(5), Include: relative to ~/.ssh, by glob; the block around it goes on afterwards.
    paramiko passes over the keyword.
    """
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(
            r"\s*(Host|Match|Include)(?:\s+|\s*=\s*)(\S.*?)\s*", line, re.IGNORECASE
        )
        if match is None or match[1].lower() != "include":
            block = line if match else block
            yield line
            continue
        if depth == _DEEPEST:
            raise OSError(f"{path}: files that include each other")
        for pattern in shlex.split(match[2]):
            top = Path("~/.ssh").expanduser() / Path(pattern).expanduser()
            for name in sorted(glob(str(top))):  # noqa: PTH207 - an absolute pattern
                if Path(name).is_file():
                    yield from _with_included(Path(name), block, depth + 1)
        yield block


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
    found = _settings(text, name, config)
    if found.get("proxycommand", "none").lower() != "none":
        raise UnknownHostError(
            f"{text}: ~/.ssh/config reaches it by ProxyCommand, which this kit does not run",
            "write the same way as ProxyJump",
        )
    asked = str(match["port"] or found.get("port", _SSH_PORT))
    port = int(asked) if asked.isdecimal() else 0
    if not 0 < port < 1 << 16:
        raise UnknownHostError(f"{text}: port {asked} is none", "HOST=user@host:port")
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


def _settings(text: str, name: str, config: paramiko.SSHConfig) -> dict[str, Any]:
    """What the configuration says of a name. UnknownHostError where that is not supported."""
    try:
        return dict(config.lookup(name))
    except (
        ImportError,
        paramiko.ConfigParseError,
        paramiko.ssh_exception.CouldNotCanonicalize,
    ) as e:
        raise UnknownHostError(
            f"{text}: ~/.ssh/config asks for what this kit does not do (Match exec, or a canonical "
            f"name that is not found): {e}",
            "write Host blocks for this host",
        ) from e


def _identities(configured: Any) -> tuple[Path, ...]:
    """The keys that the configuration names, or those of ssh's defaults that are there."""
    if configured:
        return tuple(Path(str(name)).expanduser() for name in configured)
    defaults = (Path("~/.ssh", name).expanduser() for name in _DEFAULT_KEYS)
    return tuple(path for path in defaults if path.is_file())
