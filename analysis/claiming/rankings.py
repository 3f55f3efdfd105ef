"""The functions of claims that put arms in order: by throughput, by a latency, by goodput.

Invariant: as in `quantities`. Whoever is said to be first is held against every other arm: the
second is not always the one whose error reaches furthest. What is only set in order goes through
`Reading.rank`, and no cause is read from it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial

from analysis.claiming.leading import Lead, Rate, Verge, goodput_rate, lead, output_lead
from analysis.claiming.quantities import objective, p95_ms, throughput
from analysis.claiming.reading import Reading
from analysis.definitions import definition
from analysis.goodput import Goodput
from analysis.metrics import WindowMetrics

_Found = dict[str, tuple[WindowMetrics, ...]]


def fastest(arms: Sequence[str], window: str, reading: Reading) -> str:
    """The arm with the greatest mean throughput over boots; the first by name of equal ones."""
    return _fastest(reading.rank(arms, window), reading)


def least_p95(quantity: str, arms: Sequence[str], window: str, reading: Reading) -> str:
    """The arm with the least median p95 over boots; the first by name of equal ones."""
    found, measure = reading.rank(arms, window), partial(p95_ms, quantity)
    medians = {arm: statistics.median(map(measure, windows)) for arm, windows in found.items()}
    first, *others = sorted(medians, key=lambda arm: (medians[arm], arm))
    unit = definition(quantity).unit
    for other in others:
        one, values = found[first][0], (medians[first], medians[other])
        reading.leads(Lead(first, other, one.window, one.concurrency, quantity, unit, values))
    return first


def most_goodput(
    quantity: str, threshold_ms: int, arms: Sequence[str], window: str, reading: Reading
) -> str:
    """The arm with the most goodput, mean over boots; "none" where no arm meets the objective."""
    found = reading.rank(arms, window)
    rates = {arm: _goodput(found[arm], quantity, threshold_ms) for arm in sorted(found)}
    best = max(rates, key=lambda arm: rates[arm].value)
    if rates[best].value == 0:
        for arm, windows in found.items():
            _none_or_any(arm, windows, quantity, (threshold_ms,), reading)
        return "none"
    for other in rates:
        if other != best:
            reading.leads(lead(best, rates[best], other, rates[other], "req/s", found[best][0]))
    return best


def thresholds_lost(
    quantity: str, thresholds_ms: Sequence[int], arms: Sequence[str], window: str, reading: Reading
) -> int:
    """At how many of the thresholds the arm with the highest throughput has not the most goodput.

    Thresholds that no arm meets at all are not counted: there the objective ranks nothing.
    """
    found = reading.rank(arms, window)
    first = _fastest(found, reading)
    lost = 0
    for threshold_ms in thresholds_ms:
        rates = {arm: _goodput(found[arm], quantity, threshold_ms) for arm in sorted(found)}
        mine = rates.pop(first)
        ahead = [arm for arm in rates if rates[arm].value > mine.value]
        lost += bool(ahead)
        # One arm that surely has more is enough; without any, each that may have more counts.
        rivals = (
            [max(ahead, key=lambda arm: rates[arm].low)]
            if ahead
            else [arm for arm in rates if rates[arm].high > mine.low]
        )
        for arm in rivals:
            reading.leads(lead(first, mine, arm, rates[arm], "req/s", found[first][0]))
    return lost


def goodput_of_fastest(
    quantity: str, thresholds_ms: Sequence[int], arms: Sequence[str], window: str, reading: Reading
) -> float:
    """The most goodput, over the thresholds, of the arm with the highest throughput, req/s.

    Said with it: whether any request of that arm meets the objective at all.
    """
    found = reading.rank(arms, window)
    first = _fastest(found, reading)
    _none_or_any(first, found[first], quantity, thresholds_ms, reading)
    return max(_goodput(found[first], quantity, at).value for at in thresholds_ms)


def _fastest(found: _Found, reading: Reading) -> str:
    means = {arm: statistics.fmean(map(throughput, windows)) for arm, windows in found.items()}
    first, *others = sorted(means, key=lambda arm: (-means[arm], arm))
    for other in others:
        reading.leads(output_lead(first, found[first], other, found[other]))
    return first


def _none_or_any(
    arm: str,
    windows: Sequence[WindowMetrics],
    quantity: str,
    thresholds_ms: Sequence[int],
    reading: Reading,
) -> None:
    """Note the requests of an arm that decide alone whether any meets one of the thresholds."""
    for at in thresholds_ms:
        one = _objectives(windows, quantity, at)
        if any(each.surely for each in one):
            return
    at = max(
        thresholds_ms, key=lambda t: sum(g.possibly for g in _objectives(windows, quantity, t))
    )
    found = _objectives(windows, quantity, at)
    undecided = sum(one.possibly for one in found)
    said = "any" if any(one.met for one in found) else "none"
    if undecided:
        words = f"{quantity} of at most {at} ms"
        reading.verges(Verge(arm, windows[0].window, words, said, undecided))


def _goodput(windows: Sequence[WindowMetrics], quantity: str, threshold_ms: int) -> Rate:
    return goodput_rate(windows, _objectives(windows, quantity, threshold_ms))


def _objectives(
    windows: Sequence[WindowMetrics], quantity: str, threshold_ms: int
) -> list[Goodput]:
    return [objective(window, quantity, threshold_ms) for window in windows]
