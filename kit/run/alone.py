"""One process at a time stages a run's records: a second one would write into what is verified.

Invariant: the lock dies with its process, whatever ends that; who comes second waits, and then
finds what the first has brought.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def alone_on(staging: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold `<staging>.lock` for the block. It is gone afterwards, as is an empty directory."""
    lock = staging.with_name(f"{staging.name}.lock")
    fd = _held(lock, say)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        with suppress(OSError):  # others are staged there
            lock.parent.rmdir()
        os.close(fd)


def _held(lock: Path, say: Callable[[str], None]) -> int:
    """The descriptor of the file that stands at `lock` now: who held it before removes it."""
    while True:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:  # the directory was removed between the two
            continue
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"another process brings {lock.stem} home just now: waiting")
                fcntl.flock(fd, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(fd), lock.stat()):
                return fd
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
