"""What the calibrated error of the client does to a quantity, and which effects stand above it.

Invariant: the worst case is reckoned with throughout; nothing shrinks by averaging over chunks,
because lateness that comes with a load is systematic.

A stamp is late by e, 0 <= e <= E, where E is the calibrated error (records.schema.Calibrated: the
99th percentile of kernel stamps, the largest seen of user stamps). The time of sending is read
before the send and carries none. So a time between two chunks, or between sending and a chunk, errs
by at most E in either direction.
"""

from __future__ import annotations

from collections.abc import Sequence

from records.errors import CalibrationError, FormatError
from records.schema import Calibrated


def stamp_error_ns(calibrations: Sequence[Calibrated]) -> int:
    """E in ns: the worst of these calibrations; 0 where the clocks' own error made it negative.

    CalibrationError where there is none: then no effect is above it.
    """
    if not calibrations:
        raise CalibrationError("no calibration, so no effect can be told from the client's error")
    return max(0, *(c.bound_ns for c in calibrations))


def quantity_error_ns(
    id_: str, error_ns: float, output_tokens: int, first_tokens: int = 1
) -> float:
    """By how much a latency quantity (an id of analysis.metrics.LATENCY_IDS) errs at most, in ns.

    For an effect over several requests `output_tokens` is the least of theirs.
    """
    n = output_tokens
    per_token = {"tpot.n-1": n - 1, "tpot.n-k1": n - first_tokens, "ntpot": n}
    steps = dict.fromkeys(("ttft.sent", "ttft.scheduled", "step-gap"), 1) | per_token
    if id_ not in steps:
        raise FormatError(f"no latency quantity {id_!r}: want one of {', '.join(steps)}")
    return error_ns / max(steps[id_], 1)


def length_error_ns(error_ns: float, wall_ns: int, last_ns: int) -> float:
    """By how much the length of a window errs at most, ns.

    The client reads the end of a window (`ClientReport.wall_ns`) off its own clock when it has
    noticed that all is over. What passes between the last stamp, at `last_ns` since the start, and
    that reading is the client's doing, as is the error of that stamp.
    """
    return max(wall_ns - last_ns, 0) + error_ns


def relative_error(error_ns: float, wall_ns: int) -> float:
    """By how much a rate over a window errs at most, as a share of it, where its length errs so."""
    return error_ns / wall_ns


def effect_is_resolved(effect: float, *errors: float) -> bool:
    """Whether a difference is above the errors of all that it is a difference of, in one unit."""
    return abs(effect) > sum(errors)


def ratio_is_resolved(ratio: float, error_above: float, error_below: float) -> bool:
    """Whether a ratio differs from 1 by more than the relative errors of its parts explain."""
    if error_above >= 1:
        return False
    low = ratio * (1 - error_below) / (1 + error_above)
    high = ratio * (1 + error_below) / (1 - error_above)
    return not low <= 1 <= high
