"""A kit with places of its own and an SSH identity of its own, called as a user calls it."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from sshd import ROOT, Sshd, wait_for

from records import schema
from records.run_directory import RunDirectory, runs_in

DEMO = (ROOT / "kit" / "plans" / "demo.toml").read_text()
REQUESTS = "requests = 2 }"


def tiny_plan(blocks: int = 1, requests: int = 2, tokens: int = 80) -> str:
    """The demo plan cut down: one window a boot, about 0.8 s for each request."""
    text = DEMO.replace("blocks = 2", f"blocks = {blocks}").replace('id = "demo"', 'id = "tiny"', 1)
    text = text[: text.index('[[windows]]\nid = "c8"')]
    assert REQUESTS in text
    text = text.replace("_tokens = 80", f"_tokens = {tokens}")
    return text.replace(REQUESTS, f"requests = {requests} }}")


@dataclass
class SshKit:
    """One laptop: its user's home with keys, its kit's directories, and a plan."""

    place: Path
    user_home: Path
    plan_text: str = field(default_factory=tiny_plan)
    patience_s: str = "30"
    extra: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        self.plan.write_text(self.plan_text)

    @property
    def plan(self) -> Path:
        return self.place / "tiny.toml"

    @property
    def home(self) -> Path:
        return self.place / "kit"

    @property
    def records(self) -> Path:
        return self.place / "out" / "demo" / "records"

    @property
    def env(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k != "SSH_AUTH_SOCK"}
        return {
            **kept,
            "HOME": str(self.user_home),
            "KIT_HOME": str(self.home),
            "KIT_OUT": str(self.place / "out"),
            "KIT_DATA": str(self.place / "data"),
            "KIT_SSH_PATIENCE_S": self.patience_s,
            **self.extra,
        }

    def argv(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "kit.main", *args]

    def call(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*args), cwd=ROOT, env=self.env, capture_output=True, text=True, check=False
        )

    def start(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(*args),
            cwd=ROOT,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def reproduce(self, *hosts: str) -> list[str]:
        """The words of a reproduce on these hosts."""
        return ["reproduce", "--plan", str(self.plan), "--host", ",".join(hosts), "--accept-new"]

    def fetched(self) -> list[RunDirectory]:
        return list(runs_in(self.records))


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


def alive(pid: int) -> bool:
    """Whether the process still runs; one that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


def outcomes(run: RunDirectory) -> list[str]:
    """How the boots of a run ended."""
    ended = (e.event for e in run.read() if isinstance(e.event, schema.BootEnded))
    return [event.outcome for event in ended]


def count(run: RunDirectory, kind: type) -> int:
    """How many events of a kind a run holds."""
    return sum(isinstance(e.event, kind) for e in run.read())
