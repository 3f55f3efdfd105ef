"""An engine whose harness was killed: remembered by pid and start time, ended on resume.

Invariant: only processes of the remembered engine's own tree are ever signalled; a pid that was
given to somebody else in the meantime has another start time and is left alone.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from remote.engine import proctree
from remote.engine.process import EngineProcess

_NAME = "engine.json"
_WAIT_S = 10.0
_POLL_S = 0.05


def remember(scratch: Path, engine: EngineProcess) -> None:
    """Note the engine that was just started."""
    found = proctree.read(engine.pid)
    start_ticks = found.start_ticks if found else 0
    (scratch / _NAME).write_text(json.dumps({"pid": engine.pid, "start_ticks": start_ticks}))


def forget(scratch: Path) -> None:
    """The engine was stopped in order."""
    (scratch / _NAME).unlink(missing_ok=True)


def end(scratch: Path) -> int:
    """Kill what a killed harness left running; how many processes that was."""
    path = scratch / _NAME
    if not path.exists():
        return 0
    note = json.loads(path.read_text())
    root = (int(note["pid"]), int(note["start_ticks"]))
    killed: set[tuple[int, int]] = set()
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        alive = _members(root, killed)
        if not alive:
            break
        for process in alive:
            killed.add(process.key)
            _kill(process.pid)
        time.sleep(_POLL_S)
    forget(scratch)
    return len(killed)


def _members(root: tuple[int, int], known: set[tuple[int, int]]) -> list[proctree.Process]:
    processes = proctree.snapshot()
    now = processes.get(root[0])
    # A pid is not given out again while a session of that number lives (kernel pid.c, alloc_pid and
    # free_pid): if somebody else has it, nothing of the engine's session is left.
    if now is not None and now.key != root:
        return []
    keys = proctree.belonging(processes, root, known)
    return [p for p in processes.values() if p.key in keys and p.alive]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
