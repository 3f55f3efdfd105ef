"""Which hosts HOST can name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kit.hosts.host import Done, Host, Running
from kit.hosts.inventory import read_inventory
from kit.hosts.local import LocalHost
from records.errors import UnknownHostError

if TYPE_CHECKING:
    from kit.ssh.known_hosts import Meeting

__all__ = ["Done", "Host", "LocalHost", "Running", "host_names", "parse_host"]

_INVENTORY = ".toml"
FORMS = (
    "leave HOST empty or write HOST=local for this machine; HOST=user@host[:port] or a Host of "
    "~/.ssh/config for another; several as HOST=a,b or HOST=hosts.toml"
)


def host_names(text: str) -> tuple[str, ...]:
    """The hosts that HOST=a,b,c or HOST=hosts.toml names, each as `parse_host` takes it."""
    if text.endswith(_INVENTORY):
        return tuple(f"{text}:{name}" for name in read_inventory(Path(text)))
    names = tuple(part.strip() for part in text.split(","))
    if len(set(names)) != len(names) or ("" in names and len(names) > 1):
        raise UnknownHostError(f"HOST={text}: a host is named twice, or not at all", FORMS)
    return names


def parse_host(text: str, meeting: Meeting | None = None) -> Host:
    """The host that HOST names; nothing is connected yet.

    `meeting`: what to do on first contact; without one no host is known.
    UnknownHostError names the forms that are accepted.
    """
    if text in ("", "local"):
        return LocalHost()
    file, is_listed, name = text.partition(f"{_INVENTORY}:")
    # Loaded when needed: the cryptography behind SSH takes longer to import than all the rest.
    from kit.ssh.config import is_ssh, read_config, resolve
    from kit.ssh.host import SshHost
    from kit.ssh.known_hosts import Meeting

    config = read_config()
    if is_listed:
        listed = read_inventory(Path(file + _INVENTORY))
        if name not in listed:
            known = ", ".join(listed)
            raise UnknownHostError(f"HOST={text}: no such host; there are: {known}", FORMS)
        entry = listed[name]
        where = resolve(entry.host, config)
        return SshHost(where, meeting or Meeting.strict(), text, entry.spec)
    if is_ssh(text, config):
        return SshHost(resolve(text, config), meeting or Meeting.strict())
    raise UnknownHostError(f"HOST={text}: no kind of host that this kit knows", FORMS)
