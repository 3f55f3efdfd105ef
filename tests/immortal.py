"""A real program that no signal ends, as nvidia-smi in uninterruptible sleep under a dead driver.

A process that is killed while another traces it stays unreaped for its parent until the tracer has
looked, ptrace(2); this tracer never looks, and holds the output open. It is ended by the block that
made the program.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PROGRAM = """\
#!{python}
import ctypes, os, signal, time
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(0x59616D61, ctypes.c_ulong(-1 & (1 << 64) - 1), 0, 0, 0)  # PR_SET_PTRACER_ANY, for Yama
told, tell = os.pipe()
if os.fork() == 0:
    os.setsid()
    seized = libc.ptrace(0x4206, os.getppid(), None, None)  # PTRACE_SEIZE
    with open({pids!r}, "a") as file:
        file.write(f"{{os.getpid()}} {{os.getppid()}}\\n")
    os.write(tell, b"y" if seized == 0 else b"n")
    time.sleep(600)
    os._exit(0)
assert os.read(told, 1) == b"y", "it could not be traced"
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
time.sleep(600)
"""


@contextmanager
def immortal(program: Path) -> Iterator[Path]:
    """A file whose lines name tracer and program of each start, once it has one."""
    pids = program.with_name(f"{program.name}.pids")
    program.write_text(_PROGRAM.format(python=sys.executable, pids=str(pids)))
    program.chmod(0o755)
    try:
        yield pids
    finally:
        started = pids.read_text().splitlines() if pids.exists() else []
        for pid in (int(word) for line in started for word in line.split()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
