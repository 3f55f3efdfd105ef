"""The pair of clocks that ties monotonic stamps to dates, and the boot of the host they belong to.

Invariant: durations are differences of CLOCK_MONOTONIC only; CLOCK_REALTIME dates, nothing more.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from records.schema import Clock

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TRIES = 5


def read_clock() -> Clock:
    """Both clocks at one moment: the realtime reading with the narrowest monotonic bracket of five.

    `host_boot` is a hash of the kernel's boot id: it tells boots apart and names none.
    """
    best = min((_bracketed() for _ in range(_TRIES)), key=lambda reading: reading[0])
    return Clock(best[1], best[2], host_boot())


def host_boot() -> str:
    """Twelve hex digits that change when the host is booted anew."""
    return hashlib.sha256(_BOOT_ID.read_bytes()).hexdigest()[:12]


def _bracketed() -> tuple[int, int, int]:
    before = time.monotonic_ns()
    realtime = time.time_ns()
    after = time.monotonic_ns()
    return after - before, (before + after) // 2, realtime
