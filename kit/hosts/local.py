"""This machine as a host.

Invariant: a detached process stands in a session of its own, and knows no secret of this one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kit.engine.hub_token import without_secrets
from kit.home import Home
from kit.hosts.ask import ask_facts
from kit.hosts.ask_on_host import bounded
from kit.hosts.facts import HostFacts
from kit.hosts.host import Done, HostSpec, Running


class LocalHost:
    """This machine."""

    name = "local"
    spec = HostSpec()
    python = sys.executable
    place = ""
    private_names: tuple[str, ...] = ()

    def home(self, here: Home) -> Home:
        """The kit's own."""
        return here

    def mirror(self, here: Home) -> Home:
        """No copy is needed."""
        return here

    def probe(self, directory: Path) -> HostFacts:
        """Run every probe here."""
        existing = next(p for p in (directory, *directory.parents) if p.exists())
        return ask_facts(self, existing)

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: int = 60) -> Done:
        """With the programs of the kit's own environment on PATH."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH') or os.defpath}"
        env = {**os.environ, "LC_ALL": "C", "PATH": path}
        return Done(*bounded(argv, env, timeout_s, stdin))

    def start_detached(
        self, argv: Sequence[str], cwd: Path, log: Path, note: Path, *, stdin: bytes = b""
    ) -> Running:
        """In a session of its own: a closed terminal or Ctrl-C here does not reach it."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=without_secrets(os.environ),
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if process.stdin is not None:
            with process.stdin as pipe:
                pipe.write(stdin)
        note.write_text(f"{process.pid}\n", encoding="ascii")
        return _Child(process)

    def attach(self, note: Path, argv_part: str) -> Running | None:
        """Read /proc: a process id alone may belong to somebody else by now."""
        if not note.is_file():  # opening a pipe waits for ever
            return None
        try:
            found = _Found(int(note.read_text(encoding="ascii")), argv_part)
        except (FileNotFoundError, ValueError):  # no note, or one that names no process
            return None
        return found if found.exit_status() is None else None

    def put(self, source: Path, target: Path) -> None:
        """A plain copy."""
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)

    def read(self, path: Path, offset: int = 0) -> bytes:
        """From the file."""
        with path.open("rb") as file:
            file.seek(offset)
            return file.read()

    def names(self, directory: Path) -> tuple[str, ...]:
        """A listing."""
        return tuple(sorted(p.name for p in directory.iterdir())) if directory.is_dir() else ()

    def used_mib(self, directories: Sequence[Path]) -> int:
        """Allocated blocks, links not followed."""
        total = 0
        for top in directories:
            for directory, _, names in os.walk(top):
                total += sum((Path(directory) / name).lstat().st_blocks * 512 for name in names)
        return total >> 20

    def fetch(self, source: Path, target: Path) -> None:
        """A plain copy; links are copied as links, for the verification to refuse."""
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, symlinks=True)

    def monotonic_ns(self) -> int:
        """The clock itself."""
        return time.monotonic_ns()


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
