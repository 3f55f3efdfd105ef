"""Which hosts HOST can name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kit.host import Done, Host, Running
from kit.local_host import LocalHost
from records.errors import UnknownHostError

if TYPE_CHECKING:
    from kit.known_hosts import Meeting

__all__ = ["Done", "Host", "LocalHost", "Running", "parse_host"]

FORMS = (
    "leave HOST empty or write HOST=local for this machine; HOST=user@host[:port] or a Host of "
    "~/.ssh/config for another"
)


def parse_host(text: str, meeting: Meeting | None = None) -> Host:
    """The host that HOST names; nothing is connected yet.

    `meeting`: what to do on first contact; without one no host is known.
    UnknownHostError names the forms that are accepted.
    """
    if text in ("", "local"):
        return LocalHost()
    # Loaded when needed: the cryptography behind SSH takes longer to import than all the rest.
    from kit.known_hosts import Meeting
    from kit.ssh_config import is_ssh, read_config, resolve
    from kit.ssh_host import SshHost

    config = read_config()
    if is_ssh(text, config):
        return SshHost(resolve(text, config), meeting or Meeting.strict())
    raise UnknownHostError(f"HOST={text}: no kind of host that this kit knows", FORMS)
