"""The functions of claims on one load measured twice in each boot, and on the host's own pace.

Invariant: both windows of a boot are of one load, the kit's own first; what they differ by is what
the engine and its host did from one minute to the next, not what tells two boots apart.
"""

from __future__ import annotations

import math
import statistics

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


def _consistency(arm: str, window: str, repeat: str, reading: Reading) -> Consistency:
    pairs = reading.by_both_clients(arm, window, repeat)
    try:
        return consistency([[_log(first), _log(second)] for first, second in pairs])
    except FormatError as error:
        raise ClaimError(f"arm {arm}, windows {window} and {repeat}: {error.message}") from error


def _log(window: WindowMetrics) -> float:
    if throughput(window) <= 0:
        raise ClaimError(f"boot {window.boot}, window {window.window}: no token came")
    return math.log(throughput(window))
