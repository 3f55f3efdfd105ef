"""Measure one window: fork the workers, start them together, merge what they bring back.

Invariant: when `measure` returns or raises, no worker is left; requests reach the sink in index
order, in batches, with memory bounded by the workers' (see `wire_log` and `assemble`).

The workers are processes forked before they connect, even a single one: the receive loop then
shares no interpreter lock with the caller's threads, and its CPU time is its own. Connections and
requests are shared out as `schedule.share` and `work` say.

Memory does not grow with the window: a worker peaked at 67 MiB over 0.3 million chunks and at 71
over 1.5 million, with 325 MB of log in an unnamed file meanwhile (64 streams, 217 bytes a chunk;
tests/remote/test_client_long_window.py). What grows is requests under way: 50 bytes a chunk each.
"""

from __future__ import annotations

import heapq
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from records.errors import ClientCrashError, KitError
from records.load import Load
from records.measurement import ClientReport, Request
from remote.client.dispatcher import Job
from remote.client.report import combine
from remote.client.schedule import CAPACITY_CHUNKS_PER_S, connections, share, workers_for
from remote.client.target import RequestSource, Target
from remote.client.wire_log import DEFAULT_LOG_SIZE, LogSize
from remote.client.work import ClosedWork, Counter, open_work
from remote.client.worker import STOP_SIGNALS, Account, batched, work

__all__ = ["ClientReport", "RequestSource", "Target", "WindowResult", "measure"]

_LEAD_NS = 10_000_000  # between the word to start and the start


@dataclass(frozen=True, slots=True)
class WindowResult:
    """`start_ns`: CLOCK_MONOTONIC at the start, from which `scheduled_ns`, `sent_ns` count."""

    start_ns: int
    report: ClientReport


def measure(
    target: Target,
    requests: RequestSource,
    load: Load,
    *,
    seed: int,
    sink: Callable[[Sequence[Request]], None],
    cpus: tuple[int, ...] | None,
    spill_dir: Path,
    capacity_chunks_per_s: int = CAPACITY_CHUNKS_PER_S,
    log_size: LogSize = DEFAULT_LOG_SIZE,
) -> WindowResult:
    """Send `load` to `target` and give every request to `sink`, after the window.

    `cpus`: processors for the workers, one each; None: one worker, placed by the kernel. `seed`
    decides the due times of an open loop. Disk: at most 0.4 GB per million chunks in `spill_dir`,
    nothing for windows whose log fits the memory. HostUnfitError, DiskFullError, ClientCrashError.
    """
    count = workers_for(connections(load), len(cpus) if cpus else 1, capacity_chunks_per_s)
    counter = Counter(spill_dir)
    crew: list[_Worker] = []
    try:
        for number in range(count):
            job = Job(
                target,
                requests,
                load,
                ClosedWork(load, counter)
                if load.kind == "closed"
                else open_work(load, seed, count, number),
                share(connections(load), count, number),
            )
            cpu = cpus[number % len(cpus)] if cpus else None
            _fork(crew, job, cpu, spill_dir, log_size)
        for worker in crew:
            worker.hear()
        start_ns = time.monotonic_ns() + _LEAD_NS
        for worker in crew:
            worker.pipe.send(start_ns)
        ramp_end_ns = max([worker.hear() for worker in crew])
        for worker in crew:
            worker.pipe.send(ramp_end_ns)
        for batch in batched(heapq.merge(*(w.requests() for w in crew), key=lambda r: r.index)):
            sink(batch)
        return WindowResult(start_ns, combine([worker.account for worker in crew]))
    finally:
        for worker in crew:
            worker.end()
        counter.close()


class _Worker:
    """The parent's end of a worker."""

    def __init__(self, pid: int, pipe: Connection) -> None:
        self.pid, self.pipe = pid, pipe
        self._account: Account | None = None

    @property
    def account(self) -> Account:
        """Known once all its requests have been read."""
        assert self._account is not None  # noqa: S101 - `requests` ends with it
        return self._account

    def hear(self) -> Any:
        """What it says next. Raises the KitError that stopped it, or ClientCrashError."""
        try:
            said = self.pipe.recv()
        except (EOFError, ConnectionResetError) as error:
            raise ClientCrashError(
                f"a worker of the client (pid {self.pid}) ended without a word",
                remedy="see its last lines on stderr, and dmesg for the out-of-memory killer",
            ) from error
        if isinstance(said, KitError):
            raise said
        return said

    def requests(self) -> Iterator[Request]:
        """Its requests, in index order."""
        while not isinstance(said := self.hear(), Account):
            yield from said
        self._account = said

    def end(self) -> None:
        """Make sure that it is gone."""
        self.pipe.close()
        if self._account is None:
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _fork(
    crew: list[_Worker], job: Job, cpu: int | None, spill_dir: Path, log_size: LogSize
) -> None:
    """Add a worker to the crew. A stop signal waits until it is there.

    What a handler raises while os.fork runs the hooks of other modules (logging has some) is
    swallowed; in the child, before it has handlers of its own, it would unwind the caller's code.
    """
    ours, theirs = Pipe()
    with warnings.catch_warnings(), _stop_signals_wait():
        # From 3.12 on Python warns of fork beside threads; the child runs this package's code
        # alone, takes none of the caller's locks and leaves through os._exit.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
        if pid == 0:
            ours.close()
            for worker in crew:
                worker.pipe.close()
            work(theirs, job, cpu, spill_dir, log_size)
        theirs.close()
        crew.append(_Worker(pid, ours))


@contextmanager
def _stop_signals_wait() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
