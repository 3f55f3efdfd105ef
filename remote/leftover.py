"""An engine whose harness was killed: remembered by pid and start time, ended on resume.

Invariant: only processes of the remembered engine's own tree are ever signalled; a pid that was
given to somebody else in the meantime has another start time and is left alone.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from remote.engine import proctree

_NAME = "engine.json"
_WAIT_S = 10.0
_POLL_S = 0.05


def remember(scratch: Path, key: tuple[int, int]) -> None:
    """Note an engine's pid and start time: before it is let run, so that none runs unnoted."""
    pid, start_ticks = key
    fresh = scratch / f"{_NAME}.new"
    fresh.write_text(json.dumps({"pid": pid, "start_ticks": start_ticks}))
    fresh.replace(scratch / _NAME)  # whole, or not at all


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
    while not _is_somebody_elses(root) and time.monotonic() < deadline:
        alive = proctree.kill(root, killed)
        if not alive:
            break
        killed |= alive
        time.sleep(_POLL_S)
    forget(scratch)
    return len(killed)


def _is_somebody_elses(root: tuple[int, int]) -> bool:
    now = proctree.read(root[0])
    return now is not None and now.key != root
