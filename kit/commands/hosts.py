"""`kit hosts`."""

from __future__ import annotations

import click

from kit.options import home, json_option
from kit.output import print_json, print_table, say
from records.decode import to_object


@click.command()
@json_option
def command(as_json: bool) -> None:
    """The hosts that were met over SSH: which key of each was accepted, and when.

    The fingerprint is the one that a provider shows, and that ssh-keygen -l prints on the host.

    \b
    Example:
      kit hosts
      kit hosts --json
    """
    from kit.ssh.known_hosts import pins  # the cryptography behind it takes long to import

    file = home().known_hosts
    found = pins(file)
    if as_json:
        print_json([to_object(pin) for pin in found])
        return
    if not found:
        say("no host was met yet: kit doctor user@host, for one, meets it")
        return
    rows = [(p.host, p.algorithm, p.accepted or "not noted", p.fingerprint) for p in found]
    print_table(("host", "key", "accepted", "fingerprint"), rows)
    say(f"to forget one: ssh-keygen -R HOST -f {file}")
