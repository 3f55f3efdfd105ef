"""Lists of processors as people write them.

Invariant: the result is sorted, each processor once.
"""

from __future__ import annotations

from collections.abc import Iterable

from records.errors import PlanError


def parse_cpus(text: str) -> tuple[int, ...]:
    """Read a list such as "0-3,8" (cpuset(7), "List format"); "" is no list. Else PlanError."""
    cpus: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise PlanError(f"not a list of numbers: {text!r}", "write it as in 0-3,8")
        cpus.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(cpus))


def shown_cpus(cpus: Iterable[int]) -> str:
    """The list as it would be written, "0-3,8"; "" of none."""
    spans: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in spans)
