"""One kit at a time decides which blocks of a plan are left, and submits them.

Invariant: the lock dies with its process, whatever ends that; whoever waits is told for whom, and
decides anew when its turn has come. It keeps apart the kits of one KIT_HOME, on whatever machine.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def sole_submitter(lock: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold `lock`, a file of the plan and the cluster, for the block; wait for it if need be."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            other = file.read().strip() or "another process"
            say(f"{other} submits this plan just now: waiting, to attach to its blocks")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield
