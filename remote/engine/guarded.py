"""A program that does not outlive the harness: started, held back and let go through a guard.

Invariant: between `Guarded(...)` and `go` the program has a pid and executes nothing, so that it
can be written down before it exists; if this process ends, however, so does all that it started.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

import remote
from records.errors import HostUnfitError
from remote.engine import guard, proctree

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from remote.engine.guard import main; main()"
)
_PATIENCE_S = 10.0
_POLL_S = 0.02
_NOBODY = -1  # as a keeper: nothing is below it
_REMEDY = "start the same command again: it resumes"
_all: weakref.WeakSet[Guarded] = weakref.WeakSet()


class Guarded:
    """One program, its guard above it. HostUnfitError where the guard itself cannot be had."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: BinaryIO
    ) -> None:
        """Fork, and hold back. What it prints goes to `log`."""
        self._status: int | None = None
        source = str(Path(remote.__file__).parents[1])  # the harness's archive, or the tree
        try:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, source],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        except OSError as error:
            raise HostUnfitError(
                f"cannot start the process that guards the engine: {error}", remedy=_REMEDY
            ) from error
        _all.add(self)
        try:
            order = json.dumps({"argv": list(argv), "env": dict(env), "cwd": str(cwd)}).encode()
            self._write(b"%0*d" % (guard.LENGTH_DIGITS, len(order)) + order)
            self.pid = int(self._hear())
        except BaseException:  # a stop signal, say: nobody has what would let the guard go
            self._end_guard()
            raise
        found = proctree.read(self.pid)
        self.key = found.key if found else (self.pid, 0)

    def go(self) -> None:
        """Let it run. OSError where it cannot be executed."""
        self._write(guard.GO)
        failure = self._hear()
        if failure:
            number, name = failure
            raise OSError(number, os.strerror(number), name)
        os.set_blocking(self._told, False)

    @property
    def keeper(self) -> int | None:
        """The guard's pid: below it is all that the program started; None once it has ended."""
        return self._guard.pid if self._guard.poll() is None else None

    def exit_status(self) -> int | None:
        """The program's, -N where signal N ended it; None while it runs."""
        if self._status is None and not self._from_guard.closed:
            try:
                line = os.read(self._told, 100)
            except BlockingIOError:
                return None
            # Behind what became of a word that was never given, where `go` did not read it.
            self._status = int(line.split()[-1]) if line else self._without_guard()
        return self._status

    def terminate(self, patience_s: float) -> None:
        """SIGTERM, and after so long, or for what is left then, SIGKILL. Safe to call twice."""
        if self.exit_status() is None and not self._from_guard.closed:
            found = proctree.read(self.pid)
            if found is not None and found.key == self.key:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGTERM)
            select.select([self._told], [], [], patience_s)
        self.let_go()

    def let_go(self) -> None:
        """Have the guard end what is left, if anything is, and end itself. Safe to call twice.

        Where the guard was killed before, this process does it.
        """
        if self._from_guard.closed:
            return
        self.close_gate()
        deadline = time.monotonic() + _PATIENCE_S
        try:
            self._guard.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return  # something below it cannot be killed, and it stays for that
        while self.exit_status() is None and time.monotonic() < deadline:
            proctree.kill(self.key, set(), keeper=_NOBODY)
            time.sleep(_POLL_S)
        self._from_guard.close()

    def close_gate(self) -> None:
        """Close this process's end: the guard then ends what is below it. Safe to call twice."""
        self._to_guard.close()

    def _without_guard(self) -> int | None:
        """The guard was killed: the program is then this process's child (proctree)."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            found = proctree.read(self.pid)
            alive = found is not None and found.key == self.key and found.alive
            return None if alive else -signal.SIGKILL
        return os.waitstatus_to_exitcode(status) if pid else None

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._to_guard.fileno(), data) :]
            except BrokenPipeError as error:
                raise self._lost() from error

    def _hear(self) -> Any:
        line = self._from_guard.readline()
        if not line:
            raise self._lost()
        return json.loads(line)

    def _lost(self) -> HostUnfitError:
        self._end_guard()
        return HostUnfitError(
            f"the process that guards the engine ended with status {self._guard.returncode}",
            remedy=_REMEDY,
        )

    def _end_guard(self) -> None:
        self.close_gate()  # a program that waits for the word reads its end, and ends
        self._guard.wait()
        self._from_guard.close()

    @property
    def _told(self) -> int:
        return self._from_guard.fileno()

    @property
    def _to_guard(self) -> IO[bytes]:
        assert self._guard.stdin is not None  # noqa: S101 - opened as a pipe above
        return self._guard.stdin

    @property
    def _from_guard(self) -> IO[bytes]:
        assert self._guard.stdout is not None  # noqa: S101 - opened as a pipe above
        return self._guard.stdout


def _close_gates() -> None:
    """In a child that this process forks: the harness alone holds the guards' pipes open."""
    for one in tuple(_all):
        one.close_gate()


os.register_at_fork(after_in_child=_close_gates)
