"""When requests of an open loop are due, and how connections and requests are shared out.

Invariant: every answer is a function of the load and the seed alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import count

from records.load import Load

_NS_PER_MS = 1_000_000
_NS_MILLI = 1_000_000_000_000  # ns in a second, times the 1,000 of a millihertz

# One core carries at least this many chunks per second (tests/bench); half of it is planned for.
CAPACITY_CHUNKS_PER_S = 60_000
# No engine measured so far sends a stream more chunks per second than this (5 ms a step).
FASTEST_STREAM_CHUNKS_PER_S = 200


def due_times(load: Load, seed: int) -> Iterator[int]:
    """Due times of an open loop in ns from the start, ascending, request by request.

    constant: i / rate. poisson: a Poisson process, gaps -ln(1 - U) / rate, the first gap before the
    first request. burst: `concurrency` requests at each multiple of 1 / rate.
    """
    times = _due(load, seed)
    end_ns = load.duration_ms * _NS_PER_MS
    for index, due in enumerate(times):
        if (load.requests and index >= load.requests) or (end_ns and due >= end_ns):
            return
        yield due


def _due(load: Load, seed: int) -> Iterator[int]:
    if load.kind == "poisson":
        draw = random.Random(seed).random  # noqa: S311 - a schedule, not a secret
        mean_ns = _NS_MILLI / load.rate_millihertz
        at = 0.0
        while True:
            at -= math.log(1.0 - draw()) * mean_ns
            yield round(at)
    share = load.concurrency if load.kind == "burst" else 1
    for index in count():
        yield index // share * _NS_MILLI // load.rate_millihertz


def connections(load: Load) -> int:
    """How many connections a window opens: never more than it can use."""
    return min(load.concurrency, load.requests) if load.requests else load.concurrency


def share(total: int, workers: int, worker: int) -> int:
    """How many of `total` connections worker `worker` owns."""
    return total // workers + (worker < total % workers)


def workers_for(concurrency: int, cpus: int, capacity: int = CAPACITY_CHUNKS_PER_S) -> int:
    """Client processes for a concurrency: as many as keep each below half of `capacity`, at the
    fastest stream known; never more than the processors granted, never less than one.
    """
    wanted = -(-2 * FASTEST_STREAM_CHUNKS_PER_S * concurrency // capacity)
    return max(1, min(wanted, cpus, concurrency))
