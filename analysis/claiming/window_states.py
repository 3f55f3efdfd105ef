"""The functions of claims on what GPU and engine did in windows, whatever was measured in them.

Invariant: from the facts of window.ended, void windows of completed boots included: a window is
often void for the very state that is told here.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from analysis.claiming.reading import Reading
from analysis.facts import integer, integers, part, parts
from records.errors import ClaimError


def sampled(end: str, name: str, reading: Reading) -> int:
    """The least or greatest (`end`) sample of a GPU's trace, in its own unit.

    `name`: of a column of GpuTrace (remote/gpu_watch.py). -1 stands there for no value.
    """
    told = [
        value
        for facts in reading.window_facts()
        for trace in parts(part(facts, "gpu"), "traces")
        for value in integers(trace, name)
        if value >= 0
    ]
    if not told:
        raise ClaimError(f"no window has a sample of {name}")
    return max(told) if end == "greatest" else min(told)


def power_peak_w(reading: Reading) -> float:
    """The most power that a GPU was sampled at, in watts."""
    return sampled("greatest", "power_mw", reading) / 1e3


def thread_ran_percent(arm: str, reading: Reading) -> float:
    """How much of a window the engine's busiest thread ran: the median over the arm's windows."""
    return 100 * statistics.median(_shares("on_cpu_ns", arm, reading))


def thread_waited_percent(reading: Reading) -> float:
    """How much of a window that thread waited for a processor: the most of any window."""
    return 100 * max(_shares("waiting_ns", "", reading))


def _shares(name: str, arm: str, reading: Reading) -> list[float]:
    told = list(_told(name, arm, reading))
    if not told:
        raise ClaimError("no window's busiest thread was recorded")
    return told


def _told(name: str, arm: str, reading: Reading) -> Iterator[float]:
    for facts in reading.window_facts(arm):
        length_ns = integer(part(facts, "host"), "duration_ns")
        time_ns = integer(part(facts, "busiest_thread"), name)
        if length_ns and time_ns is not None:
            yield time_ns / length_ns
