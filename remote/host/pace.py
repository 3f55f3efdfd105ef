"""How fast a host is at this moment: the time that one processor takes for a fixed piece of work.

Invariant: the work never changes, so that its times are comparable over windows, boots and hosts;
they are recorded and void nothing. It is an interpreter's loop, since an engine with a small model
waits for its own interpreter: a host whose neighbours or clocks slow that down slows the engine,
and none of it counts as stolen time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from remote.affinity import on_cpus

_REPEATS = 9
_ADDENDS = 20_000


def pace_ns(cpus: Sequence[int] = ()) -> int:
    """Median time of the work, below a millisecond, on the first of `cpus`; none: on any.

    The median of nine: one interruption by the scheduler does not count, a lasting one does.
    """
    with on_cpus(cpus[:1]):
        return int(statistics.median(_once() for _ in range(_REPEATS)))


def _once() -> int:
    begun = time.perf_counter_ns()
    total = 0
    for addend in range(_ADDENDS):
        total += addend * addend
    return time.perf_counter_ns() - begun
