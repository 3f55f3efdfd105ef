"""CPU time of the host now, and how much of an interval the hypervisor kept for others.

Invariant: two readings of the same machine; /proc/stat is the host's, also inside a container.
"""

from __future__ import annotations

from pathlib import Path

from remote.host.proc import CpuTimes, parse_cpu_times


def read_cpu_times(root: Path = Path("/")) -> CpuTimes:
    """Read /proc/stat. FormatError if it is not one."""
    return parse_cpu_times((root / "proc/stat").read_text())


def steal_ppm(before: CpuTimes, after: CpuTimes) -> int:
    """Stolen time between two readings, in parts per million of all CPU time."""
    return after.since(before).steal_ppm
