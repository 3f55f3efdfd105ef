"""Hosts: which kinds of HOST there are, and the few effects that the kit has on one.

Invariant: nothing else in kit/ starts a process or moves a file on a host; another kind of host is
another class with these methods.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kit.host_facts import PROBES, HostFacts, parse
from records.errors import UnknownHostError

_SSH = re.compile(r"(?:[A-Za-z0-9._-]+@)[A-Za-z0-9.:\[\]-]+?(?::\d{1,5})?")
_FORMS = "leave HOST empty, or write HOST=local for this machine (later also: user@host[:port])"
_PROBE_TIMEOUT_S = 60


class Running(Protocol):
    """A harness that was started or found running."""

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


class Host(Protocol):
    """The effects on a host. Paths are the host's own."""

    name: str

    def probe(self, directory: Path) -> HostFacts:
        """Look at the host; `directory` says which disk is meant."""
        ...

    def start_detached(self, argv: Sequence[str], cwd: Path, log: Path) -> Running:
        """Start a process that outlives the kit, its output appended to `log`."""
        ...

    def attach(self, pid: int, argv_part: str) -> Running | None:
        """The process `pid`, if it runs and `argv_part` is among its arguments."""
        ...

    def put(self, source: Path, target: Path) -> None:
        """Bring a file of this machine to the host."""
        ...

    def fetch(self, source: Path, target: Path) -> None:
        """Copy a directory of the host below `target`, which must not exist."""
        ...


def parse_host(text: str) -> Host:
    """The host that HOST names. UnknownHostError names the forms that are accepted."""
    if text in ("", "local"):
        return LocalHost()
    if _SSH.fullmatch(text):
        raise UnknownHostError(
            f"HOST={text}: hosts over SSH are not yet supported in this version", _FORMS
        )
    raise UnknownHostError(f"HOST={text}: no kind of host that this kit knows", _FORMS)


class LocalHost:
    """This machine."""

    name = "local"

    def probe(self, directory: Path) -> HostFacts:
        """Run every probe here, in the C locale."""
        existing = next(p for p in (directory, *directory.parents) if p.exists())
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        env = {**os.environ, "LC_ALL": "C", "PATH": path}
        return parse(
            {
                name: _output([part.replace("{}", str(existing)) for part in argv], env)
                for name, argv in PROBES.items()
            }
        )

    def start_detached(self, argv: Sequence[str], cwd: Path, log: Path) -> Running:
        """In a session of its own: a closed terminal or Ctrl-C here does not reach it."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                list(argv),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return _Child(process)

    def attach(self, pid: int, argv_part: str) -> Running | None:
        """Read /proc: a process id alone may belong to somebody else by now."""
        found = _Found(pid, argv_part)
        return found if found.exit_status() is None else None

    def put(self, source: Path, target: Path) -> None:
        """A plain copy."""
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)

    def fetch(self, source: Path, target: Path) -> None:
        """A plain copy; links are copied as links, for the verification to refuse."""
        shutil.copytree(source, target, symlinks=True)


@dataclass(frozen=True, slots=True)
class _Child:
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    def exit_status(self) -> int | None:
        return self.process.poll()

    def interrupt(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class _Found:
    pid: int
    argv_part: str

    def exit_status(self) -> int | None:
        try:
            argv = Path(f"/proc/{self.pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return 0
        return None if self.argv_part.encode() in argv else 0

    def interrupt(self) -> None:
        if self.exit_status() is None:
            os.kill(self.pid, signal.SIGTERM)


def _output(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """What the command printed; "" where it is missing or failed."""
    try:
        done = subprocess.run(
            list(argv),
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except (FileNotFoundError, PermissionError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
