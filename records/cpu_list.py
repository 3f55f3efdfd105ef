"""Lists of processors as people write them.

Invariant: the result is sorted, each processor once; a list that no host has is refused before it
is written out.
"""

from __future__ import annotations

from collections.abc import Iterable

from records.errors import PlanError

_LARGEST = 65535  # Linux is built for some thousands at most (kernel, NR_CPUS)
_REMEDY = "write it as in 0-3,8"


def parse_cpus(text: str) -> tuple[int, ...]:
    """Read a list such as "0-3,8" (cpuset(7), "List format"); "" is no list. Else PlanError."""
    cpus: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise PlanError(f"not a list of numbers: {text!r}", _REMEDY)
        low, high = _number(first), _number(last or first)
        if low > high:
            raise PlanError(f"{part} descends", _REMEDY)
        cpus.update(range(low, high + 1))
    return tuple(sorted(cpus))


def _number(text: str) -> int:
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(_LARGEST)) or int(digits) > _LARGEST:
        raise PlanError(f"{digits[:12]}: want numbers up to {_LARGEST}", _REMEDY)
    return int(digits)


def shown_cpus(cpus: Iterable[int]) -> str:
    """The list as it would be written, "0-3,8"; "" of none."""
    spans: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in spans)
