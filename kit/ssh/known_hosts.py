"""The project's own known hosts: a key is pinned on first contact, and a changed one stops.

Invariant: the file grows only after a fingerprint was shown and accepted; no entry is ever changed
or removed here. Rented addresses are used again by other machines (skypilot issue 1614), so the
user's own ~/.ssh/known_hosts is neither asked nor changed. When a key was accepted stands in its
line's comment (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"), so that both go together.
"""

from __future__ import annotations

import datetime
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import paramiko

from records.errors import HostKeyError

_ACCEPTED = "accepted="


@dataclass(frozen=True, slots=True)
class Meeting:
    """What is done on first contact. `ask`: puts a question to a person, or None."""

    file: Path
    accept_new: bool
    ask: Callable[[str], bool] | None
    say: Callable[[str], None]

    @classmethod
    def strict(cls) -> Meeting:
        """Nobody is there to ask, and no file to look into: no host is known."""
        return cls(Path(os.devnull), accept_new=False, ask=None, say=_silent)


@dataclass(frozen=True, slots=True)
class Pin:
    """A key that was accepted for a host. `host`: as known_hosts names it, address and port.

    `fingerprint`: SHA256:…, as ssh-keygen -l and providers show it; `accepted`: RFC 3339 in UTC, ""
    of one pinned before the kit noted that.
    """

    host: str
    algorithm: str
    fingerprint: str
    accepted: str

    @property
    def shown(self) -> str:
        """On one line, without the host."""
        when = f", accepted {self.accepted}" if self.accepted else ""
        return f"{self.algorithm} {self.fingerprint}{when}"


def pins(file: Path, host: str = "") -> tuple[Pin, ...]:
    """Every key that is pinned, or those of one host, in the order in which they were accepted.

    HostKeyError where the file cannot be read.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise HostKeyError(f"{file}: {error}", f"correct {file}") from error
    return tuple(
        pin
        for number, line in enumerate(map(str.strip, lines), 1)
        if line and not line.startswith("#")
        for pin in _pins_of(line, f"{file}, line {number}")
        if host in ("", pin.host)
    )


def _pins_of(line: str, where: str) -> Iterator[Pin]:
    try:
        entry = paramiko.hostkeys.HostKeyEntry.from_line(line)
    except (paramiko.SSHException, ValueError) as error:
        raise HostKeyError(f"{where}: {error}", "correct the line") from error
    if entry is None or entry.key is None:
        raise HostKeyError(f"{where}: no host key in it", "correct the line")
    comment = line.split()[3:]
    word = next((word for word in comment if word.startswith(_ACCEPTED)), "")
    for name in entry.hostnames or ():
        key = entry.key
        yield Pin(name, key.algorithm_name, key.fingerprint, word.removeprefix(_ACCEPTED))


def known_types(file: Path, name: str) -> tuple[str, ...]:
    """The key types that are pinned for a host, so that it is asked for one of these."""
    return tuple(key.get_name() for key in _pinned(file, name))


def require_known(meeting: Meeting, name: str, typed: str, key: paramiko.PKey) -> None:
    """HostKeyError unless `key` is the one pinned for `name`, or is accepted and pinned now."""
    pinned = _pinned(meeting.file, name)
    if key in pinned:
        return
    got = f"{key.algorithm_name} {key.fingerprint}"
    if pinned:
        prints = {old.fingerprint for old in pinned}
        known = (pin.shown for pin in pins(meeting.file) if pin.fingerprint in prints)
        want = "; ".join(dict.fromkeys(known))
        raise HostKeyError(
            f"{typed}: the host key has changed: got {got}, want {want}; nothing was sent",
            "if this address now belongs to another machine: "
            f"ssh-keygen -R {shlex.quote(name)} -f {shlex.quote(str(meeting.file))}; then the same "
            "command with --accept-new. "
            "If not, somebody may stand between: ask the provider",
        )
    if not _accepted(meeting, typed, got):
        raise HostKeyError(
            f"{typed}: first contact, its host key is {got}",
            "compare it with what the provider shows; then the same command with --accept-new",
        )
    now = datetime.datetime.now(datetime.timezone.utc)
    meeting.file.parent.mkdir(parents=True, exist_ok=True)
    with meeting.file.open("a", encoding="ascii") as file:
        file.write(
            f"{name} {key.get_name()} {key.get_base64()} {_ACCEPTED}{now:%Y-%m-%dT%H:%M:%SZ}\n"
        )
        file.flush()
        os.fsync(file.fileno())
    meeting.say(f"{typed}: host key pinned: {got}")


def _accepted(meeting: Meeting, typed: str, got: str) -> bool:
    if meeting.accept_new:
        return True
    if meeting.ask is None:
        return False
    return meeting.ask(f"{typed}: first contact, its host key is {got}. Trust it from now on?")


def _pinned(file: Path, name: str) -> tuple[paramiko.PKey, ...]:
    if not file.is_file():
        return ()
    pins(file)  # paramiko passes over a line that it cannot read: the host would be a new one
    entries = paramiko.HostKeys(str(file)).lookup(name)
    return tuple(entries.values()) if entries is not None else ()


def _silent(_line: str) -> None:
    """Say nothing."""
