"""The functions of claims on what changes within a boot, and on the host's own pace.

Invariant: both windows of a pair are of one load, the kit's own first; what they differ by is what
the engine and its host did from one minute to the next, not what tells two boots apart.
"""

from __future__ import annotations

import math
import statistics
from functools import lru_cache

from analysis.claiming.quantities import throughput
from analysis.claiming.reading import Reading
from analysis.metrics import WindowMetrics
from analysis.statistics.consistency import Consistency, consistency
from records.errors import ClaimError, FormatError


def repeat_throughput(arm: str, window: str, repeat: str, reading: Reading) -> float:
    """Mean over boots of the output throughput of the second window, tok/s."""
    pairs = reading.by_both_clients(arm, window, repeat)
    return statistics.fmean(throughput(second) for _, second in pairs)


def between_boots_percent(end: str, arm: str, window: str, repeat: str, reading: Reading) -> float:
    """What part of the variance of log throughput lies between boots, %; `end`: "", "low", "high".

    The rest lies between the two windows of one boot.
    """
    found = _consistency(arm, window, repeat, reading)
    return 100 * {"": found.share, "low": found.low, "high": found.high}[end]


def within_boots_percent(arm: str, window: str, repeat: str, reading: Reading) -> float:
    """CV of throughput over windows of one boot, %.

    Of log-normal values: T. B. L. Kirkwood, Biometrics 35 (1979) 908-909.
    """
    within = _consistency(arm, window, repeat, reading).within_sd
    return 100 * math.sqrt(math.expm1(within**2))


def pace_ms(end: str, arm: str, window: str, reading: Reading) -> float:
    """The fastest or slowest time of the fixed piece of work around an arm's windows, ms."""
    found = [ms for one in reading.windows(arm, window) for ms in one.pace_ms]
    if not found:
        raise ClaimError(f"arm {arm}, window {window}: the records hold no pace of the host")
    return {"fastest": min, "slowest": max}[end](found)


def median_gap_ms(end: str, arm: str, window: str, reading: Reading) -> float:
    """The least or the greatest median step gap of a boot's window, ms."""
    found = [_gap(one, one.latency_of("step-gap").p50) for one in reading.windows(arm, window)]
    return {"least": min, "greatest": max}[end](found)


def boots_of_two_speeds(percent: int, arm: str, window: str, reading: Reading) -> int:
    """Boots within whose window the p95 of step gaps is at least so many per cent of the p5.

    Of a window in which every step is of one batch: the steps then took two times, or many.
    """
    found = 0
    for one in reading.windows(arm, window):
        gaps = one.latency_of("step-gap")
        found += 100 * _gap(one, gaps.p95) >= percent * _gap(one, gaps.p5)
    return found


def _gap(window: WindowMetrics, gap_ms: float | None) -> float:
    if gap_ms is None:
        raise ClaimError(f"boot {window.boot}, window {window.window}: no request has a step gap")
    return gap_ms


def _consistency(arm: str, window: str, repeat: str, reading: Reading) -> Consistency:
    pairs = reading.by_both_clients(arm, window, repeat)
    try:
        return _of_logs(tuple((_log(first), _log(second)) for first, second in pairs))
    except FormatError as error:
        raise ClaimError(f"arm {arm}, windows {window} and {repeat}: {error.message}") from error


@lru_cache(maxsize=1)
def _of_logs(boots: tuple[tuple[float, float], ...]) -> Consistency:
    """Taken once for the claims of one arm, which stand one after the other."""
    return consistency(boots)


def _log(window: WindowMetrics) -> float:
    if throughput(window) <= 0:
        raise ClaimError(f"boot {window.boot}, window {window.window}: no token came")
    return math.log(throughput(window))
