"""The functions that claims are made of: a measure of one window, and statistics over boots.

Invariant: a statistic over boots takes one value a boot, never one a request. Every function is
deterministic; units stand in the names.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from analysis.answers import Agreement, Answers, agreement, together
from analysis.claiming.claim import Claim, Result
from analysis.claiming.leading import Verge, output_lead, spread_lead
from analysis.claiming.reading import Reading
from analysis.goodput import Goodput
from analysis.metrics import WindowMetrics
from analysis.statistics.dispersion import cv_interval
from records.errors import ClaimError

Measure = Callable[[WindowMetrics], float]
Statistic = Callable[[str, str, Reading], Result]


class Maker(Protocol):
    """Makes the claim of this name, text, statistic, unit and number of decimals for one cell."""

    def __call__(
        self, name: str, text: str, function: Statistic, unit: str, digits: int, /
    ) -> Claim: ...


def throughput(window: WindowMetrics) -> float:
    """Output tokens per second of the window's wall time."""
    return window.output_tokens_per_s


def acceptance_length(window: WindowMetrics) -> float:
    """1 + accepted / drafts from the server's counters."""
    if window.acceptance.server_length is None:
        raise ClaimError(f"boot {window.boot}, window {window.window}: the server drafted nothing")
    return window.acceptance.server_length


def p95_ms(quantity: str, window: WindowMetrics) -> float:
    """p95 within the window of one of the latency quantities, ms or ms/token."""
    point = window.latency_of(quantity).p95
    if point is None:
        raise ClaimError(f"boot {window.boot}, window {window.window}: {quantity} is undefined")
    return point


def mean(measure: Measure, arm: str, window: str, reading: Reading) -> float:
    """Mean over boots."""
    return statistics.fmean(map(measure, reading.windows(arm, window)))


def median(measure: Measure, arm: str, window: str, reading: Reading) -> float:
    """Median over boots: for percentiles, where one slow boot should not decide."""
    return statistics.median(map(measure, reading.windows(arm, window)))


def cv_percent(measure: Measure, arm: str, window: str, reading: Reading) -> float:
    """Coefficient of variation over boots, SD with n - 1."""
    found = cv_interval(_several(measure, arm, window, reading)).cv
    if measure is throughput:
        reading.leads(spread_lead(arm, reading.windows(arm, window)))
    return 100 * found


def cv_low_percent(measure: Measure, arm: str, window: str, reading: Reading) -> float:
    """Lower end of the 95 % interval of the CV (Vangel 1996); of three boots or more."""
    return 100 * cv_interval(_several(measure, arm, window, reading, 3)).low


def cv_high_percent(measure: Measure, arm: str, window: str, reading: Reading) -> float:
    """Upper end of the 95 % interval of the CV (Vangel 1996); of three boots or more."""
    return 100 * cv_interval(_several(measure, arm, window, reading, 3)).high


def distinct_acceptances(arm: str, window: str, reading: Reading) -> int:
    """How many different pairs (steps drafted, tokens accepted) the boots counted: 1 if all agree.

    Of whole numbers, so that equality is equality.
    """
    found = reading.windows(arm, window)
    return len({(w.acceptance.drafts, w.acceptance.accepted_server) for w in found})


def prompts_answered(arm: str, window: str, reading: Reading) -> int:
    """How many different prompts completed requests of an arm sent, over all boots."""
    return _answers(arm, reading.windows(arm, window)).prompts


def distinct_answers(arm: str, window: str, reading: Reading) -> int:
    """How many different answers the boots gave: as many as prompts where all answered alike.

    By the digests of their token ids; an answer is one to its prompt.
    """
    return _answers(arm, reading.windows(arm, window)).distinct


def same_answers(first: str, second: str, window: str, reading: Reading) -> int:
    """How many prompts two arms answered with the very same tokens, in every request."""
    return _agreement(first, second, window, reading).same


def other_answers(first: str, second: str, window: str, reading: Reading) -> int:
    """How many prompts two arms answered, and at least once with other tokens."""
    return _agreement(first, second, window, reading).other


def objective(window: WindowMetrics, quantity: str, threshold_ms: int) -> Goodput:
    """What one of the plan's objectives gives over a window. ClaimError: the plan has none such."""
    for one in window.goodput:
        if (one.quantity, one.threshold_ms) == (quantity, threshold_ms):
            return one
    raise ClaimError(f"the plan names no threshold of {threshold_ms} ms for {quantity}")


def compliant_percent(
    quantity: str, threshold_ms: int, arm: str, window: str, reading: Reading
) -> float:
    """Share of completed requests, over all boots, that meet the objective."""
    windows = reading.windows(arm, window)
    found = [objective(one, quantity, threshold_ms) for one in windows]
    met, requests = sum(one.met for one in found), sum(one.requests for one in found)
    # A share that is some of the requests says no more than what it prints; none and all do.
    undecided = {
        0: ("none", sum(one.possibly for one in found)),
        requests: ("all", met - sum(one.surely for one in found)),
    }
    said, turning = undecided.get(met, ("", 0))
    if turning:
        words = f"{quantity} of at most {threshold_ms} ms"
        reading.verges(Verge(arm, window, words, said, turning))
    return 100 * met / requests


def ratio(
    measure: Measure, first: str, second: str, factor: str, window: str, reading: Reading
) -> float:
    """Mean over boots of the first arm over that of the second."""
    one, two = reading.compare(first, second, factor, window)
    if measure is throughput:
        reading.leads(output_lead(first, one, second, two))
    if measure is acceptance_length:
        reading.of_acceptance()
    return statistics.fmean(map(measure, one)) / statistics.fmean(map(measure, two))


def p95_difference_ms(
    quantity: str, first: str, second: str, factor: str, window: str, reading: Reading
) -> float:
    """Median over boots of the p95 of a latency, first arm minus second, ms or ms/token."""
    one, two = reading.compare(first, second, factor, window)
    measure = partial(p95_ms, quantity)
    found = statistics.median(map(measure, one)) - statistics.median(map(measure, two))
    reading.effect_ms(abs(found), quantity)
    return found


def boots_counted(outcome: str, arm: str, reading: Reading) -> int:
    """Planned boots of an arm ("" for all) whose last attempt ended so."""
    last: dict[tuple[str, str], str] = {}
    for boot in reading.boots(arm):
        last[boot.run, boot.planned.id] = boot.outcome
    return sum(found == outcome for found in last.values())


def void_windows(arm: str, reading: Reading) -> int:
    """Windows of completed boots of an arm ("" for all) that something voids."""
    boots = [boot for boot in reading.boots(arm) if boot.outcome == "completed"]
    return sum(bool(void) for boot in boots for _, void in boot.windows)


def calibrated_p99_us(concurrency: int, reading: Reading) -> float:
    """p99 error of the client's stamps on this host, microseconds; the worst calibration counts."""
    return max(c.error_p99_ns for c in reading.calibrations(concurrency)) / 1000


def decided(path: Sequence[str], arm: str, reading: Reading) -> str:
    """What every boot of an arm decided alike; ClaimError where they differ."""
    found = set()
    for event in reading.decisions(arm):
        value: object = event.facts
        for key in path:
            value = value.get(key, "absent") if isinstance(value, dict) else "absent"
        found.add(str(value))
    if len(found) != 1:
        raise ClaimError(f"arm {arm}: boots differ in {'.'.join(path)}: {', '.join(sorted(found))}")
    return found.pop()


def chosen_apart(arm: str, reading: Reading) -> str:
    """ "yes" where target and draft of an arm came to different backends in every boot.

    ClaimError where the draft's is not logged: the engine logs a choice once per distinct text, so
    the same one and none look alike.
    """
    target = decided(("target", "backend"), arm, reading)
    draft = decided(("draft", "backend"), arm, reading)
    if not draft.isupper():
        raise ClaimError(f"arm {arm}: the draft's backend is {draft!r}")
    return "yes" if draft != target else "no"


def _agreement(first: str, second: str, window: str, reading: Reading) -> Agreement:
    # Set side by side, whatever else the arms differ in: no cause is read from it. And of whatever
    # blocks: which token is the likeliest does not change as a host becomes faster or slower.
    found = reading.wherever((first, second), window)
    agreed = agreement(*(_answers(arm, found[arm]) for arm in (first, second)))
    if agreed is None or not agreed.compared:
        raise ClaimError(f"arms {first} and {second} answered no prompt in common")
    return agreed


def _answers(arm: str, windows: Sequence[WindowMetrics]) -> Answers:
    found = together(one.answers for one in windows if one.answers is not None)
    if not found.told or any(one.answers is None for one in windows):
        raise ClaimError(f"arm {arm}: its records do not tell what its prompts were answered with")
    return found


def _several(
    measure: Measure, arm: str, window: str, reading: Reading, least: int = 2
) -> list[float]:
    values = [measure(one) for one in reading.windows(arm, window)]
    if len(values) < 2:
        raise ClaimError(f"arm {arm}, window {window}: one boot has no spread")
    if len(values) < least:  # as in the tables
        raise ClaimError(f"arm {arm}, window {window}: two boots give no interval of a spread")
    return values
