"""Read what the doctor needs from `nvidia-smi -q`, whose sections differ by driver and card.

Invariant: pure; a value that nvidia-smi did not give is None, a report without driver or GPU raises
FormatError. (The harness reads more of the same report on the host: remote/host/smi.py; the two
packages may not import each other.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from records.errors import FormatError

_GPU = re.compile(r"GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
_ABSENT = ("N/A", "[N/A]", "Not Found", "Unknown Error", "None", "")
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GpuReport:
    """One GPU. Memory in MiB; `pids` as the host numbers them; None: not reported."""

    name: str
    brand: str
    mig: str | None
    virtualization: str | None
    memory_total_mib: int | None
    memory_used_mib: int | None
    ecc_volatile_uncorrectable: int | None
    remapped_uncorrectable: int | None
    remapping_pending: str | None
    remapping_failed: str | None
    throttling: tuple[str, ...]
    power_limit_w: str | None
    power_default_w: str | None
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The driver's version, the newest CUDA it runs, the GPUs."""

    driver: str
    cuda: str
    gpus: tuple[GpuReport, ...]


def parse(text: str) -> Report:
    """One report of `nvidia-smi -q`. FormatError where it is none."""
    head: dict[str, str] = {}
    gpus: list[list[tuple[Path, str]]] = []
    for path, value in _lines(text, gpus):
        head.setdefault(path[-1], value)
    if "Driver Version" not in head or not gpus:
        raise FormatError("not a report of nvidia-smi -q: no driver version or no GPU in it")
    return Report(head["Driver Version"], head.get("CUDA Version", ""), tuple(map(_gpu, gpus)))


def _lines(text: str, gpus: list[list[tuple[Path, str]]]) -> Iterator[tuple[Path, str]]:
    """Head lines; what belongs to a GPU goes into `gpus`, each value with its sections."""
    sections: list[tuple[int, str]] = []
    for line in text.splitlines():
        if _GPU.fullmatch(line.rstrip()):
            gpus.append([])
            sections = []
            continue
        indent = len(line) - len(line.lstrip(" "))
        key, colon, value = (part.strip() for part in line.partition(" : "))
        while sections and sections[-1][0] >= indent:
            sections.pop()
        path = (*(name for _, name in sections), key)
        sections.append((indent, key))
        if not colon:
            continue
        if gpus:
            gpus[-1].append((path, value))
        else:
            yield path, value


def _gpu(entries: list[tuple[Path, str]]) -> GpuReport:
    values = {path: value for path, value in reversed(entries) if value not in _ABSENT}
    uncorrectable = [
        _number(value)
        for path, value in values.items()
        if path[:2] in (("ECC Errors", "Volatile"), ("Ecc Errors", "Volatile"))
        and "Uncorrectable" in path[-1]
    ]
    return GpuReport(
        name=values.get(("Product Name",), "unnamed"),
        brand=values.get(("Product Brand",), ""),
        mig=values.get(("MIG Mode", "Current")),
        virtualization=values.get(("GPU Virtualization Mode", "Virtualization Mode")),
        memory_total_mib=_optional(values.get(("FB Memory Usage", "Total"))),
        memory_used_mib=_optional(values.get(("FB Memory Usage", "Used"))),
        ecc_volatile_uncorrectable=sum(uncorrectable) if uncorrectable else None,
        remapped_uncorrectable=_optional(values.get(("Remapped Rows", "Uncorrectable Error"))),
        remapping_pending=values.get(("Remapped Rows", "Pending")),
        remapping_failed=values.get(("Remapped Rows", "Remapping Failure Occurred")),
        throttling=tuple(
            path[-1]
            for path, value in values.items()
            if path[0] in ("Clocks Event Reasons", "Clocks Throttle Reasons")
            and value == "Active"
            and any(word in path[-1] for word in ("Slowdown", "Power Cap", "Power Brake"))
        ),
        power_limit_w=_limit(values, "Current Power Limit", "Power Limit"),
        power_default_w=_limit(values, "Default Power Limit"),
        pids=tuple(
            _number(value)
            for path, value in entries
            if path[0] == "Processes" and path[-1] == "Process ID"
        ),
    )


def _limit(values: dict[Path, str], *names: str) -> str | None:
    """Watts as nvidia-smi writes them; of the GPU, not of its module or memory."""
    for section in ("GPU Power Readings", "Power Readings"):
        for name in names:
            if (section, name) in values:
                return values[section, name]
    return None


def _optional(value: str | None) -> int | None:
    return None if value is None else _number(value)


def _number(value: str) -> int:
    match = re.fullmatch(r"(\d+)(?: MiB)?", value)
    if match is None:
        raise FormatError(f"nvidia-smi: expected a number: {value!r}")
    return int(match[1])
