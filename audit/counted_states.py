"""What GPU and engine did in each window, counted a second time from the facts of window.ended.

Invariant: as of audit/counted.py; what is not of the form that records/FORMAT.md tells is passed
over.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WindowState:
    """Samples of all GPUs in MHz and mW; shares of the window's length, NaN where not told."""

    clocks_mhz: tuple[int, ...]
    power_mw: tuple[int, ...]
    ran: float
    waited: float


def state_of(facts: Mapping[str, Any]) -> WindowState:
    """The state that one window's facts tell."""
    thread, host = facts.get("busiest_thread"), facts.get("host")
    return WindowState(
        tuple(_samples(facts, "sm_clock_mhz")),
        tuple(_samples(facts, "power_mw")),
        _share(thread, "on_cpu_ns", host),
        _share(thread, "waiting_ns", host),
    )


def value_of(words: str, states: Iterable[tuple[str, list[WindowState]]]) -> float | None:
    """What a claim in these words comes to, of all boots' states with their arm."""
    every = [(arm, one) for arm, of_boot in states for one in of_boot]
    clocks = [clock for _, one in every for clock in one.clocks_mhz]
    if words == "gpu.clock-lowest":
        return min(clocks, default=math.nan)
    if words == "gpu.clock-highest":
        return max(clocks, default=math.nan)
    if words == "gpu.power-peak":
        return max((mw for _, one in every for mw in one.power_mw), default=math.nan) / 1e3
    if words == "thread.waited-most":
        told = [one.waited for _, one in every if not math.isnan(one.waited)]
        return max(told, default=math.nan) * 100
    if words.endswith(".thread.ran"):
        of_arm = [one.ran for arm, one in every if arm == words.removesuffix(".thread.ran")]
        ran = [one for one in of_arm if not math.isnan(one)]
        return statistics.median(ran) * 100 if ran else math.nan
    return None


def _samples(facts: Mapping[str, Any], name: str) -> Iterable[int]:
    gpu = facts.get("gpu")
    traces = gpu.get("traces") if isinstance(gpu, dict) else None
    for trace in traces if isinstance(traces, list) else []:
        column = trace.get(name) if isinstance(trace, dict) else None
        for value in column if isinstance(column, list) else []:
            if type(value) is int and value >= 0:
                yield value


def _share(thread: Any, name: str, host: Any) -> float:
    time_ns = thread.get(name) if isinstance(thread, dict) else None
    length_ns = host.get("duration_ns") if isinstance(host, dict) else None
    if type(time_ns) is not int or type(length_ns) is not int or length_ns == 0:
        return math.nan
    return time_ns / length_ns
