"""A kit with places of its own, called and started as a user does, and what its runs left there.

Invariant: places are its own; an SSH identity, a daemon or a GPU beside them is added by `extra`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from sshd import ROOT, wait_for

from records import schema
from records.run_directory import RunDirectory, runs_in

PATIENCE_S = 180
_DEMO = (ROOT / "kit" / "plans" / "demo.toml").read_text()
_REQUESTS = "requests = 2 }"


def tiny_plan(blocks: int = 1, requests: int = 2, tokens: int = 80) -> str:
    """The demo plan cut down: one window a boot, about 0.8 s for each request."""
    text = _DEMO.replace("blocks = 2", f"blocks = {blocks}")
    text = text.replace('id = "demo"', 'id = "tiny"', 1)
    text = text[: text.index('[[windows]]\nid = "c8"')]
    assert _REQUESTS in text
    text = text.replace("_tokens = 80", f"_tokens = {tokens}")
    return text.replace(_REQUESTS, f"requests = {requests} }}")


@dataclass
class CalledKit:
    """`kit` with a directory for all it keeps, a plan there, and further variables in `extra`."""

    place: Path
    plan_text: str = field(default_factory=tiny_plan)
    extra: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        self.plan.write_text(self.plan_text)

    @property
    def plan(self) -> Path:
        return self.place / "tiny.toml"

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def out(self) -> Path:
        return self.place / "out"

    @property
    def data(self) -> Path:
        return self.place / "data"

    @property
    def records(self) -> Path:
        """Where runs of the reference server come home to."""
        return self.out / "demo" / "records"

    @property
    def env(self) -> dict[str, str]:
        places = {"KIT_HOME": self.home, "KIT_OUT": self.out, "KIT_DATA": self.data}
        return {**os.environ, **{name: str(path) for name, path in places.items()}, **self.extra}

    def argv(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "kit.main", *args]

    def call(self, *args: str) -> subprocess.CompletedProcess[str]:
        """To its end."""
        return subprocess.run(
            self.argv(*args), cwd=ROOT, env=self.env, capture_output=True, text=True, check=False
        )

    def start(self, *args: str) -> subprocess.Popen[str]:
        """In a session of its own, as a terminal gives it one: a signal meets it alone."""
        process = subprocess.Popen(
            self.argv(*args),
            cwd=ROOT,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """Every process that was started here; a harness of its own goes on to its run's end."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def reproduce(self, *more: str) -> list[str]:
        """The words of a reproduce of its plan."""
        return ["reproduce", "--plan", str(self.plan), *more]

    def reproduced(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Called with these words."""
        return self.call(*self.reproduce(*more))

    def reproducing(self, *more: str) -> subprocess.Popen[str]:
        """Started with these words."""
        return self.start(*self.reproduce(*more))

    def runs(self) -> list[RunDirectory]:
        """The runs carried out here."""
        return list(runs_in(self.home / "runs"))

    def fetched(self) -> list[RunDirectory]:
        """The runs that came home."""
        return list(runs_in(self.records))

    def fetched_run(self) -> RunDirectory:
        """The only one that came home."""
        (run,) = self.fetched()
        return run

    def job_pid(self) -> int:
        """The process that carries out the only job here: its harness, or a container's keeper."""
        (note,) = (self.home / "jobs").glob("*.pid")
        return int(note.read_text())

    def has_recorded(self, event_type: str) -> bool:
        """Whether a run carried out here holds an event of this type."""
        needle = f'"type":"{event_type}"'.encode()
        files = (run.events for run in self.runs() if run.events.exists())
        return any(needle in file.read_bytes() for file in files)

    def wait_for_event(self, event_type: str) -> None:
        """Until a run carried out here holds one."""
        wait_for(lambda: self.has_recorded(event_type), f"no {event_type}", PATIENCE_S)


def alive(pid: int) -> bool:
    """Whether the process still runs; one that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


def blocks_of(run: RunDirectory) -> tuple[int, ...]:
    """The blocks that a run was given; () is all."""
    first = next(iter(run.read())).event
    assert isinstance(first, schema.RunStarted)
    return first.blocks


def outcomes(run: RunDirectory) -> list[str]:
    """How the boots of a run ended."""
    ended = (e.event for e in run.read() if isinstance(e.event, schema.BootEnded))
    return [event.outcome for event in ended]


def count(run: RunDirectory, kind: type) -> int:
    """How many events of a kind a run holds."""
    return sum(isinstance(e.event, kind) for e in run.read())
