"""Whether packages are being installed now. Reports: skypilot#554 (apt's lock), homelab#4110.

A machine that was just rented often upgrades itself: that takes processor and disk, holds the lock
that an installation waits for, and may exchange the driver under a running kernel. The lock is
looked for among the kernel's own (proc(5), /proc/locks), which needs no root and takes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kit.doctor.topic import PASS, WARN, Needs, Probe, Seen, Topic, Verdict
from records.errors import FormatError

_PROBES = (
    Probe("locks", ("cat", "/proc/locks")),
    Probe("dpkg-lock", ("stat", "-c", "%i", "/var/lib/dpkg/lock-frontend")),
)


def _check(seen: Seen, needs: Needs) -> Iterator[Verdict]:  # noqa: ARG001 - one signature for all
    number = seen.text("dpkg-lock")
    if not number:  # no such file: a system without apt, or one that never used it
        return
    if not number.isdecimal():
        raise FormatError(f"stat -c %i: want a number, got {number[:80]!r}")
    # "1: POSIX  ADVISORY  WRITE pid major:minor:inode start end"
    if re.search(rf":{number}\s", seen.text("locks")):
        yield Verdict(
            "updates",
            WARN,
            "apt's lock is held",
            "packages are being installed: what else is to be must wait, processor and disk are "
            "taken, and the driver may be exchanged",
            "wait for its end, and never delete the lock: sudo apt-get -o DPkg::Lock::Timeout=600 "
            "check; then: sudo systemctl stop apt-daily.timer apt-daily-upgrade.timer",
        )
        return
    yield Verdict("updates", PASS, "none under way")


UPDATES = Topic(_PROBES, _check)
