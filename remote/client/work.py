"""Which request comes next: claimed from one counter by all workers, or due by the schedule.

Invariant: over all workers every index is given out once, in ascending order within a worker.

Closed loop: a worker's connection takes the lowest index nobody has taken, so that at the end of a
request budget no connection idles while another worker still has requests. Open loop: request i
belongs to worker i modulo the number of workers, for its due time is fixed beforehand.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from records.load import Load
from remote.client.schedule import due_times

NS_PER_MS = 1_000_000


class Counter:
    """A counter shared by forked processes without a lock to wait for: the offset of one file.

    Linux moves the offset of an open file that several processes share under that file's lock
    (fs/read_write.c: ksys_lseek, fdget_pos), so each `claim` gets a number of its own.
    """

    def __init__(self, directory: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115

    def claim(self) -> int:
        """0, 1, 2, … over all processes."""
        return os.lseek(self._file.fileno(), 1, os.SEEK_CUR) - 1

    def close(self) -> None:
        """Close this process's copy."""
        self._file.close()


class ClosedWork:
    """Requests of a closed loop."""

    def __init__(self, load: Load, counter: Counter) -> None:
        self._budget = load.requests
        self._counter = counter
        self.exhausted = False

    def claim(self) -> int:
        """The next index, or -1 when the budget is spent."""
        if not self.exhausted:
            index = self._counter.claim()
            if not self._budget or index < self._budget:
                return index
            self.exhausted = True
        return -1


def open_work(load: Load, seed: int, workers: int, worker: int) -> Iterator[tuple[int, int]]:
    """(index, due ns) of the requests of one worker."""
    return islice(enumerate(due_times(load, seed)), worker, None, workers)
