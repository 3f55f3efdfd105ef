"""Where a host keeps the lock that lets one measuring run at a time onto it, and who holds it.

Invariant: the lock is a flock, which dies with its process; what stands in the file is a hint.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

_NAME = "spec-fp8-reproduction-kit.lock"


def lock_path(environ: Mapping[str, str]) -> Path:
    """The same file for every user and working directory of a host; KIT_HOST_LOCK moves it."""
    named = environ.get("KIT_HOST_LOCK")
    return Path(named) if named else Path(tempfile.gettempdir()) / _NAME


def holder(path: Path) -> str:
    """What the run that holds the lock wrote into it, `run <id>`; "" where none holds it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        # Shared, and given back at once: two who look do not disturb each other. A run that begins
        # in this very moment is refused and says so, as by any other that it meets.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(fd, 200, 0).decode("utf-8", "replace").strip()
    finally:
        os.close(fd)
    return ""
