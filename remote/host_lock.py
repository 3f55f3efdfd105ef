"""One measuring run a host: two at once would each measure the other.

Invariant: the lock dies with its process, whatever ends that; it is held from before the first
observation to after the last. Synthetic runs measure nothing and need none. For a run in a
container its keeper holds the lock, outside, where every other run of the host looks for it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from records.errors import RunBusyError
from records.host_lock import lock_path
from records.job import Job


def sole_run_of(job: Job) -> AbstractContextManager[None]:
    """The host for this job alone. Several hosts on one machine, as in tests, name their locks."""
    if job.synthetic:
        return nullcontext()
    return sole_run(job.run_id, lock_path(os.environ))


@contextmanager
def sole_run(run_id: str, path: Path) -> Iterator[None]:
    """Hold the host for this run. RunBusyError names the run that holds it already."""
    fd = _open(path)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(fd, 200, 0).decode("utf-8", "replace").strip() or "another run"
            raise RunBusyError(
                f"{other} is being measured on this host; two at once would disturb each other",
                remedy="wait for it (kit status), or stop it: kit stop",
            ) from None
        _sign(path, run_id)
        yield
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    """Open without O_CREAT first: the kernel refuses that on others' files in a sticky directory
    (sysctl fs.protected_regular), and a lock needs no more than reading.
    """
    for _ in range(2):
        try:
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            _create(path)
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _create(path: Path) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        return
    os.fchmod(fd, 0o644)
    os.close(fd)


def _sign(path: Path, run_id: str) -> None:
    """Leave the run's name for whoever is refused; only the file's owner can."""
    try:
        with path.open("w") as file:
            file.write(f"run {run_id}\n")
    except PermissionError:
        return
