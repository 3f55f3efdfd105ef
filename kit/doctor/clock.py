"""How far the host's real-time clock is from this machine's. Report: mongodb specs#809.

Durations are never made of it (they are monotonic, on one host); certificates and people are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kit.doctor.topic import PASS, WARN, Needs, Probe, Seen, Topic, Verdict
from records.errors import FormatError

CLOCK_PROBE = "clock"
_WARN_NS = 2_000_000_000
_PROBES = (Probe(CLOCK_PROBE, ("date", "+%s %N")),)


def offset_ns(text: str, asked_ns: int, answered_ns: int) -> tuple[int, int]:
    """Host minus here, and how uncertain that is: half the time the question took (Cristian)."""
    match = re.fullmatch(r"(\d+) (\d{9})", text.strip())
    if match is None:
        raise FormatError(f"date +%s %N: cannot read {text[:80]!r}")
    there = int(match[1]) * 1_000_000_000 + int(match[2])
    return there - (asked_ns + answered_ns) // 2, (answered_ns - asked_ns) // 2


def _check(seen: Seen, needs: Needs) -> Iterator[Verdict]:  # noqa: ARG001 - one signature for all
    offset, uncertain = offset_ns(seen.text(CLOCK_PROBE), *seen.clock_ns)
    found = f"{offset / 1e9:+.3f} s, known to {uncertain / 1e9:.3f} s"
    if abs(offset) - uncertain > _WARN_NS:
        cause = "the clocks differ: times of day in the records would mislead, TLS may fail"
        yield Verdict("clock", WARN, found, cause, "on the host: timedatectl set-ntp true")
    else:
        yield Verdict("clock", PASS, found)


CLOCK = Topic(_PROBES, _check)
