"""Why a window is void, for eyes: millionths as percent, nanoseconds as milliseconds.

Invariant: the record's own reason is what machines get; another text than such a reason stays as
it is.
"""

from __future__ import annotations

import re

# A reason of remote/validity.py that names a value, its unit and its bound.
_BOUNDED = re.compile(r"(.*?)\b([0-9]{1,30}) (ppm|ns)(.*), bound ([0-9]{1,30})")
_DIGITS = range(2, 7)


def reason_text(reason: str) -> str:
    """A recorded reason in units for people; as many digits as tell the value from its bound."""
    match = _BOUNDED.fullmatch(reason)
    if match is None:
        return reason
    before, value, unit, after, bound = match.groups()
    scale, name = (10_000, "%") if unit == "ppm" else (1_000_000, "ms")
    found, allowed = int(value) / scale, int(bound) / scale
    told = [(f"{found:.{digits}f}", f"{allowed:.{digits}f}") for digits in _DIGITS]
    shown, most = next((pair for pair in told if pair[0] != pair[1]), told[0])
    return f"{before}{shown} {name}{after}, bound {most} {name}"
