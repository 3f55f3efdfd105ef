"""A called kit with an SSH identity of its own, and what its runs left on a host."""

from __future__ import annotations

import getpass
from pathlib import Path

from called_kit import CalledKit, tiny_plan
from sshd import Sshd, wait_for

from records.run_directory import RunDirectory, runs_in


class SshKit(CalledKit):
    """One laptop: a called kit, and its user's home with keys."""

    def __init__(self, place: Path, user_home: Path, plan_text: str = "") -> None:
        super().__init__(place, plan_text or tiny_plan())
        self.user_home = user_home
        self.patience_s = "30"

    @property
    def env(self) -> dict[str, str]:
        of_user = {"HOME": str(self.user_home), "KIT_SSH_PATIENCE_S": self.patience_s}
        given = {**super().env, **of_user, **self.extra}
        if "SSH_AUTH_SOCK" not in self.extra:
            given.pop("SSH_AUTH_SOCK", None)
        return given

    def reproduce(self, *hosts: str) -> list[str]:
        """The words of a reproduce on these hosts."""
        return super().reproduce("--host", ",".join(hosts), "--accept-new")


def name_of(sshd: Sshd) -> str:
    """HOST for this sshd."""
    return f"{getpass.getuser()}@127.0.0.1:{sshd.port}"


def runs_on(sshd: Sshd) -> list[RunDirectory]:
    """The runs on this host."""
    return list(runs_in(sshd.home / "runs"))


def harness_pid(sshd: Sshd) -> int:
    """The harness's process id, as noted on the host."""
    notes = list((sshd.home / "jobs").glob("*.pid"))
    return int(notes[-1].read_text())


def wait_for_event(sshd: Sshd, event_type: str, times: int = 1) -> None:
    """Until a run on this host has recorded an event of this type."""
    needle = f'"type":"{event_type}"'.encode()

    def seen() -> bool:
        files = (r.events for r in runs_on(sshd) if r.events.exists())
        return any(file.read_bytes().count(needle) >= times for file in files)

    wait_for(seen, f"no {event_type} on the host")
