"""One worker process: connect, wait for the start, receive, then build and hand over the requests.

Invariant: the process ends when its parent does, and never returns into the caller's code.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from records.errors import HostUnfitError, KitError
from records.measurement import Request
from remote.client.assemble import Assembler, Tally
from remote.client.connection import Connection
from remote.client.dispatcher import Dispatcher, Job
from remote.client.receiver import receive
from remote.client.wire_log import LogSize, WireLog

_TIMER_SLACK = Path("/proc/self/timerslack_ns")
_SPARE_FILES = 64
_BATCH_REQUESTS = 128
_BATCH_CHUNKS = 32_768
# Those that `remote.interruption` handles in the parent, which blocks them while it forks.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


@dataclass(frozen=True, slots=True)
class Account:
    """What a worker says at its end. CPU and wall time are those of the receive loop alone."""

    tally: Tally
    cpu_ns: int
    wall_ns: int
    peak_rss_bytes: int


def work(pipe: Pipe, job: Job, cpu: int | None, spill_dir: Path, size: LogSize) -> None:
    """Serve one window over `pipe`, in a process forked for it, and exit.

    Says None when connected; hears the start (CLOCK_MONOTONIC ns), says its end of the ramp; hears
    that of all workers, says lists of requests in index order and at last its Account. A KitError
    in place of any of these is the end.
    """
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to handle
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        try:
            _serve(pipe, job, cpu, spill_dir, size)
        except KitError as error:
            pipe.send(error)
        code = 0
    except (BrokenPipeError, EOFError):
        pass  # the parent is gone; nobody is left to tell
    except BaseException:  # noqa: BLE001 - the one place that must not unwind into the parent's code
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _serve(pipe: Pipe, job: Job, cpu: int | None, spill_dir: Path, size: LogSize) -> None:
    _prepare_process(cpu, job.connections)
    log = WireLog(spill_dir, size)
    epoll = select.epoll()
    dispatcher = Dispatcher(job, log, epoll)
    parent = Connection(-1)
    parent.receive = _orphaned
    dispatcher.by_fd[pipe.fileno()] = parent
    epoll.register(pipe.fileno(), 0)  # hang-up is always reported
    dispatcher.connect()
    pipe.send(None)
    start_ns = pipe.recv()
    gc.collect()
    gc.freeze()
    gc.disable()
    while (ahead_ns := start_ns - time.monotonic_ns()) > 0:
        time.sleep(ahead_ns / 1e9)
    dispatcher.start(start_ns)
    cpu_ns = time.process_time_ns()
    receive(epoll, dispatcher, log)
    cpu_ns = time.process_time_ns() - cpu_ns
    end_ns = time.monotonic_ns()
    dispatcher.stop()
    gc.enable()
    gc.unfreeze()
    pipe.send(dispatcher.ramp_end_ns or end_ns)
    assembler = Assembler(start_ns, pipe.recv())
    for batch in batched(assembler.requests(log.entries())):
        pipe.send(batch)
    log.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    pipe.send(Account(assembler.tally, cpu_ns, end_ns - start_ns, peak))


def batched(requests: Iterator[Request]) -> Iterator[list[Request]]:
    """Lists short enough to hold: at most 128 requests or 32,768 chunks and one request."""
    batch: list[Request] = []
    chunks = 0
    for request in requests:
        batch.append(request)
        chunks += len(request.chunk_ns)
        if len(batch) == _BATCH_REQUESTS or chunks >= _BATCH_CHUNKS:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


def _prepare_process(cpu: int | None, connections: int) -> None:
    if cpu is not None:
        try:
            os.sched_setaffinity(0, {cpu})
        except OSError as error:
            raise HostUnfitError(f"processor {cpu}: {error}", remedy="nproc --all") from error
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + _SPARE_FILES
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise HostUnfitError(
            f"{connections} connections need {needed} open files, the limit is {hard}",
            remedy=f"ulimit -Hn {needed}",
        )
    if soft != resource.RLIM_INFINITY and needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    # The default lets the kernel wake us 50 us late; where it stays, `late_send` reports it.
    with suppress(OSError):
        _TIMER_SLACK.write_text("1")


def _orphaned(*_args: object) -> None:
    os._exit(1)
