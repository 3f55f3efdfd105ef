"""The engine's busiest thread over a window: how long it ran, and waited for a processor.

Invariant: two looks at /proc, before the load and after it; nothing runs in between. These are the
guest kernel's own times: a thread that ran all the while and yet did less was slowed from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
# proc_pid_stat(5): fields 22 and 39, counted from the third, which follows the name.
_START, _PROCESSOR = 22 - 3, 39 - 3

# A thread for good: process, thread, and when it began.
Key = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """One thread since it began; `processor`: on which it ran last.

    Documentation/scheduler/sched-stats.rst: time on a processor, time on a run queue, and how often
    it was given one.
    """

    name: str
    processor: int
    on_cpu_ns: int
    waiting_ns: int
    timeslices: int


@dataclass(frozen=True, slots=True)
class BusiestThread:
    """The thread with the most time on a processor between two looks.

    `processors`: on which it ran last at either look; equal where it may never have moved.
    """

    name: str
    on_cpu_ns: int
    waiting_ns: int
    timeslices: int
    processors: tuple[int, int]


def read_threads(pids: Iterable[int]) -> dict[Key, ThreadTimes]:
    """The threads of these processes; none of a kernel without schedstat, or that have ended."""
    found = {}
    for pid in pids:
        try:
            tasks = sorted((_PROC / str(pid) / "task").iterdir())
        except OSError:
            continue
        for task in tasks:
            try:
                stat = (task / "stat").read_text(errors="replace")
                schedstat = (task / "schedstat").read_text()
            except OSError:
                continue
            start, times = parse(stat, schedstat)
            found[pid, int(task.name), start] = times
    return found


def parse(stat: str, schedstat: str) -> tuple[int, ThreadTimes]:
    """When a thread began, in ticks, and its times; the name may hold blanks and parentheses."""
    head, _, tail = stat.rpartition(")")
    fields = tail.split()
    on_cpu_ns, waiting_ns, timeslices = (int(word) for word in schedstat.split()[:3])
    name = head.partition("(")[2]
    times = ThreadTimes(name, int(fields[_PROCESSOR]), on_cpu_ns, waiting_ns, timeslices)
    return int(fields[_START]), times


def busiest(
    before: Mapping[Key, ThreadTimes], after: Mapping[Key, ThreadTimes]
) -> BusiestThread | None:
    """The busiest thread between two looks; None where there is none in the second."""
    found = None
    for key, now in after.items():
        then = before.get(key, ThreadTimes(now.name, now.processor, 0, 0, 0))
        one = BusiestThread(
            now.name,
            now.on_cpu_ns - then.on_cpu_ns,
            now.waiting_ns - then.waiting_ns,
            now.timeslices - then.timeslices,
            (then.processor, now.processor),
        )
        if found is None or one.on_cpu_ns > found.on_cpu_ns:
            found = one
    return found
