"""Parse what Linux says in /proc, /sys and /etc about a host.

Invariant: text in, value out; text that is not of the documented form raises FormatError. Sources:
proc(5), cgroups(7), kernel documentation admin-guide/cgroup-v2.rst and cgroup-v1/.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from records.errors import FormatError

ABSENT = "absent"
# cgroup v1 writes "no limit" as the largest page-aligned number of 63 bits.
_V1_UNLIMITED_BYTES = 1 << 62


@dataclass(frozen=True, slots=True)
class CpuModel:
    """The processor as the kernel names it, and the instruction sets that decide what can run."""

    model: str
    vendor: str
    avx2: bool
    avx512f: bool
    amx_tile: bool
    hypervisor: bool


@dataclass(frozen=True, slots=True)
class Memory:
    """Of /proc/meminfo: installed, and available without swapping."""

    total_bytes: int
    available_bytes: int


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Time of all CPUs together since the machine's boot, in ticks of 1/100 s (USER_HZ)."""

    busy_ticks: int
    idle_ticks: int
    steal_ticks: int

    def since(self, before: CpuTimes) -> CpuShare:
        """Shares of the interval that ends here; FormatError if a counter fell."""
        busy = self.busy_ticks - before.busy_ticks
        idle = self.idle_ticks - before.idle_ticks
        steal = self.steal_ticks - before.steal_ticks
        # iowait, in idle, may fall by itself (proc_stat(5)); busy and steal may not.
        if busy < 0 or steal < 0:
            raise FormatError("CPU time fell between two readings of /proc/stat")
        total = busy + max(idle, 0) + steal
        if total == 0:
            return CpuShare(0, 0, 0)
        return CpuShare(total, busy * 1_000_000 // total, steal * 1_000_000 // total)


@dataclass(frozen=True, slots=True)
class CpuShare:
    """Parts per million of an interval of `total_ticks`, over all CPUs."""

    total_ticks: int
    busy_ppm: int
    steal_ppm: int


def parse_cpuinfo(text: str) -> CpuModel:
    """Read /proc/cpuinfo; x86 and Arm name things differently, and Arm names no model."""
    first: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = (part.strip() for part in line.partition(":"))
        if colon:
            first.setdefault(key, value)
    flags = first.get("flags", first.get("Features"))
    if flags is None:
        raise FormatError("/proc/cpuinfo lists neither flags nor Features")
    words = frozenset(flags.split())
    return CpuModel(
        model=first.get("model name", ABSENT),
        vendor=first.get("vendor_id", first.get("CPU implementer", ABSENT)),
        avx2="avx2" in words,
        avx512f="avx512f" in words,
        amx_tile="amx_tile" in words,
        hypervisor="hypervisor" in words,
    )


def parse_meminfo(text: str) -> Memory:
    """Read /proc/meminfo, whose kB are KiB."""
    found = dict(re.findall(r"^(MemTotal|MemAvailable):\s+(\d+) kB$", text, re.MULTILINE))
    if len(found) != 2:
        raise FormatError("/proc/meminfo without MemTotal or MemAvailable")
    return Memory(int(found["MemTotal"]) * 1024, int(found["MemAvailable"]) * 1024)


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Read a list such as `0-3,8`; empty for an empty line."""
    found: list[int] = []
    for part in text.strip().split(",") if text.strip() else []:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            raise FormatError(f"not a list of CPUs: {text!r}")
        found.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(found)


def parse_cpu_times(text: str) -> CpuTimes:
    """Read the first line of /proc/stat. Guest time is inside user time, so it is not added."""
    match = re.match(r"cpu +([\d ]+)$", text, re.MULTILINE)
    fields = [int(field) for field in match[1].split()] if match else []
    if len(fields) < 8:
        raise FormatError(f"not a /proc/stat: {text[:80]!r}")
    user, nice, system, idle, iowait, irq, softirq, steal = fields[:8]
    return CpuTimes(user + nice + system + irq + softirq, idle + iowait, steal)


def parse_load(text: str) -> int:
    """The one-minute load of /proc/loadavg, in thousandths."""
    match = re.match(r"(\d+)\.(\d\d) ", text)
    if match is None:
        raise FormatError(f"not a /proc/loadavg: {text!r}")
    return int(match[1]) * 1000 + int(match[2]) * 10


def parse_os_release(text: str) -> str:
    """PRETTY_NAME of /etc/os-release, as os-release(5) quotes it."""
    match = re.search(r"""^PRETTY_NAME=(["']?)(.*)\1$""", text, re.MULTILINE)
    return match[2] if match else ABSENT


def parse_cpu_max(text: str) -> int | None:
    """cpu.max of cgroup v2 in thousandths of a CPU; None: no limit."""
    match = re.fullmatch(r"(max|\d+) (\d+)", text.strip())
    if match is None:
        raise FormatError(f"not a cpu.max: {text!r}")
    return None if match[1] == "max" else int(match[1]) * 1000 // int(match[2])


def parse_cfs(quota: str, period: str) -> int | None:
    """The CFS quota and period of cgroup v1 in thousandths of a CPU; None: no limit."""
    if not re.fullmatch(r"-?\d+", quota.strip()) or not re.fullmatch(r"[1-9]\d*", period.strip()):
        raise FormatError(f"not a CFS quota and period: {quota!r}, {period!r}")
    return None if int(quota) < 0 else int(quota) * 1000 // int(period)


def parse_memory_limit(text: str) -> int | None:
    """memory.max (v2) or memory.limit_in_bytes (v1); None: no limit."""
    value = text.strip()
    if value == "max":
        return None
    if not value.isdigit():
        raise FormatError(f"not a memory limit: {text!r}")
    return None if int(value) >= _V1_UNLIMITED_BYTES else int(value)


def parse_throttled(text: str) -> int | None:
    """Throttled time of cpu.stat in µs (v1 gives ns); None where the group counts none."""
    match = re.search(r"^throttled_(usec|time) (\d+)$", text, re.MULTILINE)
    if match is None:
        return None
    return int(match[2]) if match[1] == "usec" else int(match[2]) // 1000


def parse_cgroup_path(text: str, controller: str) -> tuple[int, str] | None:
    """The group of /proc/self/cgroup for a controller: (version, path); None if it has none.

    A controller bound to v1 has a line of its own; else the line "0::" of v2 holds it.
    """
    unified = None
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) != 3:
            raise FormatError(f"not a /proc/self/cgroup: {line!r}")
        if controller in parts[1].split(","):
            return 1, parts[2]
        if parts[0] == "0" and not parts[1]:
            unified = (2, parts[2])
    return unified
