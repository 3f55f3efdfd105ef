"""The project's own known hosts: a key is pinned on first contact, and a changed one stops.

Invariant: the file grows only after a fingerprint was shown and accepted; no entry is ever changed
or removed here. Rented addresses are used again by other machines (skypilot issue 1614), so the
user's own ~/.ssh/known_hosts is neither asked nor changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import paramiko

from records.errors import HostKeyError


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
        want = ", ".join(f"{old.algorithm_name} {old.fingerprint}" for old in pinned)
        raise HostKeyError(
            f"{typed}: the host key has changed: got {got}, want {want}; nothing was sent",
            "if this address now belongs to another machine: "
            f"ssh-keygen -R '{name}' -f {meeting.file}; then the same command with --accept-new. "
            "If not, somebody may stand between: ask the provider",
        )
    if not _accepted(meeting, typed, got):
        raise HostKeyError(
            f"{typed}: first contact, its host key is {got}",
            "compare it with what the provider shows; then the same command with --accept-new",
        )
    meeting.file.parent.mkdir(parents=True, exist_ok=True)
    with meeting.file.open("a", encoding="ascii") as file:
        file.write(f"{name} {key.get_name()} {key.get_base64()}\n")
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
    try:
        entries = paramiko.HostKeys(str(file)).lookup(name)
    except (paramiko.SSHException, ValueError) as error:
        raise HostKeyError(f"{file}: {error}", f"correct {file}") from error
    return tuple(entries.values()) if entries is not None else ()


def _silent(_line: str) -> None:
    """Say nothing."""
