"""A cluster under Slurm as a host: files by its login node, processes by its scheduler.

Invariant: what is read and written stands on the storage that the login node shares with the
nodes; a harness is a task of an array job, known by the note that was left when it was submitted.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kit.home import Home
from kit.hosts.facts import HostFacts
from kit.hosts.host import Done, Host, HostSpec, Running
from kit.slurm.scheduler import Scheduler
from kit.slurm.site import SlurmSite

# An array by its name, and a task of it; formerly by its number.
_NOTED = re.compile(rb"(kit-[0-9a-f]+|[0-9]+)((?:_[0-9]+)?)\n")


class SlurmHost:
    """One cluster, and the part of it that was asked for."""

    def __init__(self, login: Host, site: SlurmSite, name: str) -> None:
        self.login = login
        self.site = site
        self.scheduler = Scheduler(login, site.poll_s)
        self._name = name

    @property
    def name(self) -> str:
        """As kit/fleet/address.py composes it."""
        return self._name

    @property
    def spec(self) -> HostSpec:
        """The login node's."""
        return self.login.spec

    @property
    def python(self) -> str:
        """The nodes' interpreter; the login node's own where the site names none."""
        return self.site.python or self.login.python

    @property
    def place(self) -> str:
        """None: each node tells itself apart."""
        return ""

    @property
    def private_names(self) -> tuple[str, ...]:
        """The login node's; a node adds its own."""
        return self.login.private_names

    def home(self, here: Home) -> Home:
        """The login node's."""
        return self.login.home(here)

    def mirror(self, here: Home) -> Home:
        """The login node's."""
        return self.login.mirror(here)

    def probe(self, directory: Path) -> HostFacts:
        """Of the login node: what the nodes are is for Slurm to know."""
        return self.login.probe(directory)

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: int = 60) -> Done:
        """On the login node."""
        return self.login.run(argv, stdin=stdin, timeout_s=timeout_s)

    def start_detached(
        self, argv: Sequence[str], cwd: Path, log: Path, note: Path, *, stdin: bytes = b""
    ) -> Running:
        """On the login node: installations, never a measurement."""
        return self.login.start_detached(argv, cwd, log, note, stdin=stdin)

    def attach(self, note: Path, argv_part: str) -> Running | None:
        """The task that the note's neighbour remembers, unless it has ended; else by the note."""
        try:
            noted = _NOTED.fullmatch(self.read(task_note(note)))
        except FileNotFoundError:
            return self.login.attach(note, argv_part)
        if noted is None:
            return None
        array, task = (part.decode("ascii") for part in noted.groups())
        if not array.isdecimal():
            array = self.scheduler.number(array)
        if not array:
            return None
        found = Task(self, f"{array}{task}", stop_note(note))
        return found if found.exit_status() is None else None

    def put(self, source: Path, target: Path) -> None:
        """To the shared storage."""
        self.login.put(source, target)

    def read(self, path: Path, offset: int = 0) -> bytes:
        """From the shared storage."""
        return self.login.read(path, offset)

    def names(self, directory: Path) -> tuple[str, ...]:
        """On the shared storage."""
        return self.login.names(directory)

    def used_mib(self, directories: Sequence[Path]) -> int:
        """On the shared storage."""
        return self.login.used_mib(directories)

    def fetch(self, source: Path, target: Path) -> None:
        """From the shared storage."""
        self.login.fetch(source, target)

    def monotonic_ns(self) -> int:
        """0: each node has a clock of its own, and the login node's is none of them."""
        return 0

    def write(self, path: Path, data: bytes) -> None:
        """A small file on the shared storage."""
        with tempfile.TemporaryDirectory(prefix="kit-slurm-") as directory:
            file = Path(directory) / path.name
            file.write_bytes(data)
            self.put(file, path)


@dataclass(frozen=True, slots=True)
class Task:
    """A task of an array job as a running process."""

    host: SlurmHost
    name: str
    stop: Path

    @property
    def pid(self) -> int:
        """The number of the array job."""
        return int(self.name.partition("_")[0])

    def exit_status(self) -> int | None:
        """None while it waits, runs or will be queued again; 0 where Slurm has forgotten it."""
        state = self.host.scheduler.task(self.name)
        if state is None:
            return 0
        return state.exit_status if state.has_ended else None

    @property
    def waits(self) -> bool:
        """Whether it waits for a node, at first or again."""
        state = self.host.scheduler.task(self.name)
        return state is not None and state.waits

    @property
    def waits_for(self) -> str:
        """Why it has no node, in Slurm's word: squeue(1), JOB REASON CODES; "" where it has."""
        state = self.host.scheduler.task(self.name)
        return state.reason.replace("_", " ") if state is not None and state.waits else ""

    @property
    def ended_as(self) -> str:
        """As what Slurm ended it: squeue(1), JOB STATE CODES; "" where it ended by itself."""
        state = self.host.scheduler.task(self.name)
        return state.ended_as if state is not None else ""

    def interrupt(self) -> None:
        """Ask it to mark its boot and end, and not to queue itself again."""
        self.host.write(self.stop, b"\n")
        self.host.scheduler.end(self.name)


def task_note(note: Path) -> Path:
    """Beside a run's job and the note of its process, that of a task: `kit-0a1b2c3d_3`."""
    return note.with_suffix(".slurm")


def stop_note(note: Path) -> Path:
    """Likewise the file that tells a task to end."""
    return note.with_suffix(".stop")
