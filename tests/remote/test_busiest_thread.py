"""The busiest thread of real processes, and what two looks at it make of its times."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from remote.engine.busiest import BusiestThread, ThreadTimes, busiest, parse, read_threads

# Works once it is told to, until it has used so much of a processor; then says so and waits.
WORKING = (
    "import sys, time\n"
    "print(flush=True)\n"
    "sys.stdin.readline()\n"
    "while time.process_time() < 0.3: pass\n"
    "print(flush=True)\n"
    "sys.stdin.readline()\n"
)


@pytest.fixture
def pair() -> Iterator[tuple[subprocess.Popen[str], subprocess.Popen[str]]]:
    """Two processes that have started: one to work, one to wait."""
    argv, pipe = [sys.executable, "-c", WORKING], subprocess.PIPE
    started = [subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    for one in started:
        assert one.stdout is not None
        one.stdout.readline()
    yield started[0], started[1]
    for one in started:
        one.kill()
        one.communicate()


def test_the_thread_that_worked_is_the_busiest(pair):
    worker, waiter = pair
    pids = [worker.pid, waiter.pid]
    before = read_threads(pids)
    assert {pid for pid, _, _ in before} == set(pids)
    worker.stdin.write("\n")
    worker.stdin.flush()
    worker.stdout.readline()
    after = read_threads(pids)
    found = busiest(before, after)
    assert found is not None
    assert found.on_cpu_ns > 100_000_000
    assert found.waiting_ns >= 0
    (key,) = [key for key in after if key[0] == worker.pid]
    assert found.on_cpu_ns == after[key].on_cpu_ns - before[key].on_cpu_ns
    assert set(found.processors) <= os.sched_getaffinity(0)


def test_processes_that_have_ended_have_no_threads(pair):
    worker, _ = pair
    worker.kill()
    worker.wait()
    assert read_threads([worker.pid]) == {}
    assert busiest({}, {}) is None


def test_a_thread_that_began_in_between_counts_whole():
    new = ThreadTimes("new", 3, 50, 7, 2)
    old = ThreadTimes("old", 1, 1_000, 9, 5)
    later = ThreadTimes("old", 2, 1_010, 9, 6)
    found = busiest({(1, 1, 1): old}, {(1, 1, 1): later, (1, 2, 9): new})
    assert found == BusiestThread("new", 50, 7, 2, (3, 3))


def test_a_name_may_hold_anything():
    stat = "7 (VLLM::Engine) (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 "
    stat += "0 " * 16 + "11 0 0"
    start, times = parse(stat, "123 45 6\n")
    assert (start, times) == (4242, ThreadTimes("VLLM::Engine) (x", 11, 123, 45, 6))
