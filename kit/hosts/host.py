"""What the kit may do to a host: a handful of effects, the same for every kind of host.

Invariant: nothing else in kit/ starts a process or moves a file on a host; another kind of host is
another class with these methods. Paths are the host's own unless a parameter says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from kit.home import Home
from kit.hosts import ask_on_host
from kit.hosts.facts import HostFacts

NOT_FOUND, TIMED_OUT = ask_on_host.NOT_FOUND, ask_on_host.TIMED_OUT


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended: its status (-N: ended by signal N) and what it printed."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class HostSpec:
    """What the user says of a host besides its address; all may be left out.

    `directory`: the kit's own there. `python`: for the harness. `engine_python` and `site`: an
    engine that is installed there already. Processors by number, none: left to the kernel.
    """

    directory: str = ""
    python: str = ""
    engine_python: str = ""
    site: tuple[str, ...] = ()
    client_cpus: tuple[int, ...] = ()
    engine_cpus: tuple[int, ...] = ()


class Running(Protocol):
    """A detached process that was started or found running."""

    @property
    def pid(self) -> int:
        """Its process id on the host."""
        ...

    def exit_status(self) -> int | None:
        """None while it runs; -N: ended by signal N; 0 where the status cannot be known."""
        ...

    def interrupt(self) -> None:
        """Ask it to stop after marking the boot under way (SIGTERM)."""
        ...


@runtime_checkable
class Queued(Protocol):
    """A process that a scheduler starts, and may take off its machine again."""

    @property
    def waits(self) -> bool:
        """Whether it has no machine now."""
        ...


class Host(Protocol):
    """The effects on a host."""

    @property
    def name(self) -> str:
        """The host as the user wrote it. Never recorded."""
        ...

    @property
    def spec(self) -> HostSpec:
        """What the user said of it."""
        ...

    @property
    def python(self) -> str:
        """The interpreter there that runs the harness: Python 3.10 or newer."""
        ...

    @property
    def place(self) -> str:
        """What tells this host from another of the same make: "" here, elsewhere its address."""
        ...

    @property
    def private_names(self) -> tuple[str, ...]:
        """Names and addresses that must not reach a record."""
        ...

    def home(self, here: Home) -> Home:
        """Where the kit keeps things on the host."""
        ...

    def mirror(self, here: Home) -> Home:
        """Where jobs, journals and logs of this host's runs can be read on this machine."""
        ...

    def probe(self, directory: Path) -> HostFacts:
        """Look at the host; `directory` says which disk is meant."""
        ...

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: int = 60) -> Done:
        """Run a short command in the C locale, to its end. It may be run twice if a line drops.

        One that has none after `timeout_s` is TIMED_OUT and waited for no longer, also where it
        cannot be killed.
        """
        ...

    def start_detached(
        self, argv: Sequence[str], cwd: Path, log: Path, note: Path, *, stdin: bytes = b""
    ) -> Running:
        """Start a process that outlives the kit, its output appended to `log`.

        `note` is the file that remembers its process id, for `attach`. `stdin`: a short secret for
        its standard input; it stands nowhere else on the host.
        """
        ...

    def attach(self, note: Path, argv_part: str) -> Running | None:
        """The process that `note` remembers, if it runs and `argv_part` is among its arguments."""
        ...

    def put(self, source: Path, target: Path) -> None:
        """Bring a file or a tree of this machine to the host; what is there already stays."""
        ...

    def read(self, path: Path, offset: int = 0) -> bytes:
        """The bytes of a file from `offset` on. FileNotFoundError where there is none."""
        ...

    def names(self, directory: Path) -> tuple[str, ...]:
        """What a directory holds, sorted; nothing where there is none."""
        ...

    def used_mib(self, directories: Sequence[Path]) -> int:
        """What these directories take up on the host's disk."""
        ...

    def fetch(self, source: Path, target: Path) -> None:
        """Make `target` on this machine equal the host's directory `source`.

        What `target` holds already may save transfer; it never decides the outcome.
        """
        ...

    def monotonic_ns(self) -> int:
        """About what the host's CLOCK_MONOTONIC shows now; for estimates alone."""
        ...
