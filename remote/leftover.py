"""An engine whose harness was killed: remembered by pid and start time, ended by the next start.

Invariant: only processes of the remembered engine's own tree are ever signalled; a pid that was
given to somebody else in the meantime has another start time and is left alone. So is everybody
where the note names no engine: it then is none, and holds up no run.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from records import durable
from remote.engine import proctree

_NAME = "engine.json"
_WAIT_S = 10.0
_POLL_S = 0.05
_LARGEST_PID = 1 << 22  # PID_MAX_LIMIT, linux/threads.h


def remember(scratch: Path, key: tuple[int, int]) -> None:
    """Note an engine's pid and start time: before it is let run, so that none runs unnoted."""
    pid, start_ticks = key
    note = json.dumps({"pid": pid, "start_ticks": start_ticks})
    durable.replace(scratch / _NAME, note.encode())


def forget(scratch: Path) -> None:
    """The engine was stopped in order."""
    (scratch / _NAME).unlink(missing_ok=True)


def end(scratch: Path) -> int:
    """Kill what a killed harness left running; how many processes that was."""
    root = _remembered(scratch / _NAME)
    if root is None:
        forget(scratch)
        return 0
    killed: set[tuple[int, int]] = set()
    deadline = time.monotonic() + _WAIT_S
    while not _is_somebody_elses(root) and time.monotonic() < deadline:
        alive = proctree.kill(root, killed)
        if not alive:
            break
        killed |= alive
        time.sleep(_POLL_S)
    forget(scratch)
    return len(killed)


def _remembered(path: Path) -> tuple[int, int] | None:
    """The engine that is noted here; None where none is, or the host's end tore the note."""
    try:
        note = json.loads(path.read_bytes())
        pid, start_ticks = note["pid"], note["start_ticks"]
    except (FileNotFoundError, ValueError, RecursionError, TypeError, KeyError):
        return None
    if not isinstance(pid, int) or not isinstance(start_ticks, int):
        return None
    # Of session 0 is init, and below it is everybody: no engine's.
    return (pid, start_ticks) if 1 < pid <= _LARGEST_PID and start_ticks >= 0 else None


def _is_somebody_elses(root: tuple[int, int]) -> bool:
    now = proctree.read(root[0])
    return now is not None and now.key != root
