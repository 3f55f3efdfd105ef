"""Start the reference server as a process of its own and stop it: for calibration, demos, tests.

Invariant: when `launch` returns the server accepts connections; when the block ends it is gone.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from records.errors import EngineBootError

FROM_TREE = (sys.executable, "-m", "remote.reference")
_ADDRESS = re.compile(r"reference server on (\S.*)$")
_PORT = re.compile(r":(\d+)$")


@dataclass(frozen=True, slots=True)
class Launched:
    """A running reference server: its addresses as logged, its port (0: unix socket), its pid."""

    addresses: tuple[str, ...]
    port: int
    pid: int


@contextmanager
def launch(
    options: Sequence[str], command: Sequence[str] = FROM_TREE, *, stop_timeout_s: float = 10.0
) -> Iterator[Launched]:
    """Run `command` + `options` for the length of a with block. EngineBootError if it dies."""
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    try:
        yield _ready(process)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=stop_timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _ready(process: subprocess.Popen[str]) -> Launched:
    assert process.stdout is not None  # noqa: S101 - opened as a pipe just above
    said: list[str] = []
    addresses: tuple[str, ...] = ()
    for line in process.stdout:
        said.append(line)
        found = _ADDRESS.search(line.rstrip())
        if found:
            addresses = tuple(found[1].split(" "))
        if "Application startup complete" in line:
            port = _PORT.search(addresses[0])
            return Launched(addresses, int(port[1]) if port else 0, process.pid)
    code = process.wait()
    raise EngineBootError(f"the reference server exited with {code}: {''.join(said[-3:]).strip()}")
