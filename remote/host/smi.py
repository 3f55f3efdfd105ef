"""Parse the report of `nvidia-smi -q`, whose sections differ by driver, card and `-d` options.

Invariant: a value is None where nvidia-smi printed none (no such line, N/A, Not Found, not
supported); any other value that does not have the expected form raises FormatError.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from records.errors import FormatError

_ABSENT = (
    "N/A",
    "Not Found",
    "[N/A]",
    "Unknown Error",
    "Requested functionality has been deprecated",
)
_INDENT = 4
_LOG_HEADER = re.compile(r"=+NVSMI LOG=+")
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")

Entry = tuple[tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process on a GPU; the pid is that of the host, which a container cannot see."""

    pid: int
    kind: str
    used_mib: int | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. Clocks in MHz, power in mW, memory in MiB, temperature in degrees Celsius.

    `compute_capability`: not in the report, so asked for apart (remote/host/gpu.py).
    """

    name: str | None
    uuid: str | None
    persistence: str | None
    mig: str | None
    virtualization: str | None
    memory_total_mib: int | None
    memory_used_mib: int | None
    sm_clock_mhz: int | None
    sm_clock_max_mhz: int | None
    memory_clock_mhz: int | None
    memory_clock_max_mhz: int | None
    power_draw_mw: int | None
    power_limit_mw: int | None
    power_limit_max_mw: int | None
    temperature_c: int | None
    throttle_reasons: tuple[str, ...] | None
    ecc_mode: str | None
    ecc_volatile_correctable: int | None
    ecc_volatile_uncorrectable: int | None
    remapped_correctable: int | None
    remapped_uncorrectable: int | None
    remapping_pending: str | None
    remapping_failed: str | None
    processes: tuple[GpuProcess, ...] | None
    compute_capability: str | None = field(default=None, metadata={"since": 2})


@dataclass(frozen=True, slots=True)
class SmiReport:
    """Driver and CUDA version, and the GPUs in the order of their bus ids."""

    driver: str
    cuda: str
    gpus: tuple[Gpu, ...]


def parse(text: str) -> SmiReport:
    """Read one report or several of the same host after one another; later ones add what is new."""
    head, gpus = _entries(text)
    if "Driver Version" not in head or not gpus:
        raise FormatError("not a report of nvidia-smi -q: no driver version or no GPU in it")
    return SmiReport(
        driver=head["Driver Version"],
        cuda=head.get("CUDA Version", "unreported"),
        gpus=tuple(_gpu(gpus[bus]) for bus in sorted(gpus)),
    )


def _entries(text: str) -> tuple[dict[str, str], dict[str, list[Entry]]]:
    """Head lines, and for each bus id its (path of sections and key, value) in order."""
    head: dict[str, str] = {}
    gpus: dict[str, list[Entry]] = {}
    current: list[Entry] | None = None
    sections: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if _LOG_HEADER.fullmatch(line.strip()):
            current = None
            continue
        indent = len(line) - len(line.lstrip(" "))
        if indent == 0 and (match := _GPU.fullmatch(line.strip())):
            current, sections = gpus.setdefault(match[1], []), []
            continue
        key, colon, value = (part.strip() for part in line.partition(" : "))
        if current is None:
            if not colon:
                raise FormatError(f"line {number}: not of nvidia-smi -q: {line!r}")
            head.setdefault(key, value)
            continue
        while sections and sections[-1][0] >= indent:
            sections.pop()
        # "Process ID : 12" both has a value and heads the lines below it.
        path = (*(name for _, name in sections), key)
        if colon:
            current.append((path, value))
        sections.append((indent, key))
    return head, gpus


def _gpu(entries: Sequence[Entry]) -> Gpu:
    values: dict[tuple[str, ...], str] = {}
    for path, value in entries:
        values.setdefault(path, value)
    read = _Reader(values)
    return Gpu(
        name=read.text(("Product Name",)),
        uuid=read.text(("GPU UUID",)),
        persistence=read.text(("Persistence Mode",)),
        mig=read.text(("MIG Mode", "Current")),
        virtualization=read.text(("GPU Virtualization Mode", "Virtualization Mode")),
        memory_total_mib=read.integer("MiB", ("FB Memory Usage", "Total")),
        memory_used_mib=read.integer("MiB", ("FB Memory Usage", "Used")),
        sm_clock_mhz=read.integer("MHz", ("Clocks", "SM")),
        sm_clock_max_mhz=read.integer("MHz", ("Max Clocks", "SM")),
        memory_clock_mhz=read.integer("MHz", ("Clocks", "Memory")),
        memory_clock_max_mhz=read.integer("MHz", ("Max Clocks", "Memory")),
        power_draw_mw=read.milli(
            "W",
            ("GPU Power Readings", "Instantaneous Power Draw"),
            ("GPU Power Readings", "Power Draw"),
            ("GPU Power Readings", "Average Power Draw"),
            ("Power Readings", "Power Draw"),
        ),
        power_limit_mw=read.milli(
            "W",
            ("GPU Power Readings", "Current Power Limit"),
            ("Power Readings", "Power Limit"),
        ),
        power_limit_max_mw=read.milli(
            "W", ("GPU Power Readings", "Max Power Limit"), ("Power Readings", "Max Power Limit")
        ),
        temperature_c=read.integer("C", ("Temperature", "GPU Current Temp")),
        throttle_reasons=_throttle_reasons(entries),
        ecc_mode=read.text(("ECC Mode", "Current"), ("Ecc Mode", "Current")),
        ecc_volatile_correctable=_ecc(entries, "Correctable"),
        ecc_volatile_uncorrectable=_ecc(entries, "Uncorrectable"),
        remapped_correctable=read.integer("", ("Remapped Rows", "Correctable Error")),
        remapped_uncorrectable=read.integer("", ("Remapped Rows", "Uncorrectable Error")),
        remapping_pending=read.text(("Remapped Rows", "Pending")),
        remapping_failed=read.text(("Remapped Rows", "Remapping Failure Occurred")),
        processes=_processes(entries),
    )


class _Reader:
    """Typed look-ups; the first path that has a value wins (names differ between drivers)."""

    def __init__(self, values: dict[tuple[str, ...], str]) -> None:
        self._values = values

    def text(self, *paths: tuple[str, ...]) -> str | None:
        for path in paths:
            value = self._values.get(path)
            if value is not None and value not in _ABSENT:
                return value
        return None

    def milli(self, unit: str, *paths: tuple[str, ...]) -> int | None:
        value = self.text(*paths)
        return None if value is None else int(_number(value, unit) * 1000)

    def integer(self, unit: str, *paths: tuple[str, ...]) -> int | None:
        value = self.text(*paths)
        return None if value is None else int(_number(value, unit))


def _number(value: str, unit: str) -> Decimal:
    match = re.fullmatch(rf"(\d+(?:\.\d+)?){' ' + unit if unit else ''}", value)
    if match is None:
        raise FormatError(
            f"nvidia-smi: expected a number{' of ' + unit if unit else ''}: {value!r}"
        )
    return Decimal(match[1])


def _throttle_reasons(entries: Sequence[Entry]) -> tuple[str, ...] | None:
    """Active reasons; None if the report has no such section. Idle is a state, not a throttle."""
    sections = ("Clocks Event Reasons", "Clocks Throttle Reasons")
    found = [(path, value) for path, value in entries if path[0] in sections]
    if not found:
        return None
    unknown = [v for _, v in found if v not in ("Active", "Not Active") and v not in _ABSENT]
    if unknown:
        raise FormatError(f"nvidia-smi: a clock event reason is {unknown[0]!r}")
    active = (path[-1] for path, value in found if value == "Active" and path[-1] != "Idle")
    return tuple(dict.fromkeys(active))


def _ecc(entries: Sequence[Entry], kind: str) -> int | None:
    """Sum over SRAM and DRAM; older drivers split SRAM Uncorrectable in two."""
    counts = [
        int(_number(value, ""))
        for path, value in entries
        if path[:2] in (("ECC Errors", "Volatile"), ("Ecc Errors", "Volatile"))
        and kind in path[-1].split()
        and value not in _ABSENT
    ]
    return sum(counts) if counts else None


def _processes(entries: Sequence[Entry]) -> tuple[GpuProcess, ...] | None:
    """None if the report has no such section; () if it says None."""
    if all(path[0] != "Processes" for path, _ in entries):
        return None
    found: list[dict[str, str]] = []
    for path, value in entries:
        if path[0] != "Processes":
            continue
        if path[-1] == "Process ID":
            found.append({"pid": value})
        elif found and path[-1] in ("Type", "Used GPU Memory"):
            found[-1][path[-1]] = value
    return tuple(
        GpuProcess(
            pid=int(_number(process["pid"], "")),
            kind=process.get("Type", "unreported"),
            used_mib=_mib(process.get("Used GPU Memory", "N/A")),
        )
        for process in found
    )


def _mib(value: str) -> int | None:
    # "Not available in WDDM driver model" and the like
    absent = value in _ABSENT or value.startswith("Not available")
    return None if absent else int(_number(value, "MiB"))
