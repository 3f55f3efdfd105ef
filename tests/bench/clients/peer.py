"""A benchmark tool of somebody else's, run by its own command line as its users run it.

CPU time is that of all its processes between its first request and its last chunk: imports and
reports are not counted. It is read from /proc ten times a second, in ticks of 10 ms.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_PERIOD_S = 0.1
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")

Samples = list[tuple[int, int]]


def run(argv: Sequence[str], log: Path) -> Samples:
    """Run the tool to its end; (CLOCK_MONOTONIC ns, CPU ns so far) pairs. Exits with its status."""
    samples: Samples = []
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            env={**env, "DO_NOT_TRACK": "1"}, cwd=log.parent,
        )  # fmt: skip
        while process.poll() is None:
            samples.append((time.monotonic_ns(), _session_cpu_ns()))
            time.sleep(_PERIOD_S)
    if process.returncode:
        sys.stderr.write(log.read_text(errors="replace")[-2000:])
        sys.exit(process.returncode)
    return samples


def cpu_between(samples: Samples, start_ns: int, end_ns: int) -> int:
    """CPU ns from the last reading before `start_ns` to the first after `end_ns`."""
    before = [cpu for at, cpu in samples if at <= start_ns]
    after = [cpu for at, cpu in samples if at >= end_ns]
    return (after[0] if after else samples[-1][1]) - (before[-1] if before else 0)


def _session_cpu_ns() -> int:
    """User and system time of this session's processes, without this one, and of those reaped."""
    session, total = os.getsid(0), 0
    for directory in Path("/proc").iterdir():
        if not directory.name.isdecimal() or int(directory.name) == os.getpid():
            continue
        try:  # proc(5): the fields behind the name, which may hold anything
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session:
            total += sum(map(int, fields[11:15]))
    return total * _TICK_NS


def stream_id(response_id: str) -> str:
    """The id by which the server knows the request."""
    return response_id.removeprefix("cmpl-")
