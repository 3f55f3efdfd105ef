"""What an order of arms, or a count against a threshold, rests on, for all that the client may err.

Invariant: what is noted here is what a claim says, with the least and the most that the stamps of
the same windows leave possible; whether that is enough is judged in `resolution`.

A rate is a count over the length of its window. Lengths err by what `analysis.calibration` says of
them, counts of requests that meet an objective by those that lie too near to its threshold
(analysis/goodput.py). Errors of boots are not averaged out: all stamps may be late alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from analysis.goodput import Goodput
from analysis.metrics import WindowMetrics

_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Lead:
    """Two arms of which one is said to be ahead of the other in one window.

    `latency`: the quantity, where it is one of times, in ms or ms/token; "" for rates. `values`: of
    the two, in `unit`. `errors`: by how much the one ahead may be less, and the other more, in the
    order of the arms; None for times, whose errors follow from the plan (`resolution`).
    """

    first: str
    second: str
    window: str
    concurrency: int
    latency: str
    unit: str
    values: tuple[float, float]
    errors: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Verge:
    """Requests of an arm on which it turns whether none, any or all of them meet an objective.

    `said`: "none", "any" or "all". `undecided`: those of them too near to the threshold to tell, of
    which one alone would make it another word.
    """

    arm: str
    window: str
    objective: str
    said: str
    undecided: int


@dataclass(frozen=True, slots=True)
class Rate:
    """A mean over boots per second, with the least and the most that it may be."""

    low: float
    value: float
    high: float


def output_rate(windows: Sequence[WindowMetrics]) -> Rate:
    """Output throughput, tok/s."""
    return _mean([_rate(*(w.output_tokens_per_s,) * 3, w) for w in windows])


def goodput_rate(windows: Sequence[WindowMetrics], found: Sequence[Goodput]) -> Rate:
    """Requests that meet an objective, req/s; `found`: what it gives over each window."""
    seconds = [window.wall_ns / _NS_PER_S for window in windows]
    return _mean(
        [
            _rate(one.surely / length, one.per_second, one.possibly / length, window)
            for window, one, length in zip(windows, found, seconds, strict=True)
        ]
    )


def lead(first: str, one: Rate, second: str, two: Rate, unit: str, window: WindowMetrics) -> Lead:
    """What parts two arms by these rates; `window`: any of theirs."""
    if one.value >= two.value:
        errors = (one.value - one.low, two.high - two.value)
    else:
        errors = (one.high - one.value, two.value - two.low)
    values = (one.value, two.value)
    return Lead(first, second, window.window, window.concurrency, "", unit, values, errors)


def output_lead(
    first: str,
    one: Sequence[WindowMetrics],
    second: str,
    two: Sequence[WindowMetrics],
) -> Lead:
    """What parts two arms in output throughput."""
    return lead(first, output_rate(one), second, output_rate(two), "tok/s", one[0])


def output_spread(windows: Sequence[WindowMetrics]) -> Rate:
    """CV over boots of output throughput, %, of two boots or more.

    Values that each err by at most a share e move a standard deviation (n - 1) by no more than the
    largest of such errors: half of them e up, half e down, which is e sqrt(n / (n - 1)).
    """
    values = [window.output_tokens_per_s for window in windows]
    cv = 100 * stdev(values) / fmean(values)
    share = max(window.rate_error for window in windows)
    reach = 100 * share * math.sqrt(len(values) / (len(values) - 1))
    return Rate(cv - reach, cv, cv + reach)


def spread_lead(arm: str, windows: Sequence[WindowMetrics]) -> Lead:
    """What parts the boots of an arm in output throughput from boots that are all alike."""
    none = Rate(0.0, 0.0, 0.0)
    return lead(arm, output_spread(windows), "boots that are all alike", none, "%", windows[0])


def _rate(least: float, value: float, most: float, window: WindowMetrics) -> Rate:
    """All three by the window's length as it was read, which may be otherwise by its error."""
    share = window.rate_error
    return Rate(least / (1 + share), value, most / (1 - share) if share < 1 else math.inf)


def _mean(rates: Sequence[Rate]) -> Rate:
    return Rate(
        fmean(rate.low for rate in rates),
        fmean(rate.value for rate in rates),
        fmean(rate.high for rate in rates),
    )
