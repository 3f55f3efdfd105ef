"""Which claims say more than the client's calibrated error leaves standing.

Invariant: a value rests on nothing below the error of its stamps without being told here.

A stamp is late by 0 to E (analysis/calibration.py), so a time between two stamps, or between a
sending and a stamp, errs by at most E. A quantity per token is such a time over a request's tokens:
TPOT(n-1) errs by E / (n - 1), TPOT(n-k1) by E / (n - k1), NTPOT by E / n. The bound is greatest for
the request with the fewest tokens, n, which the window's plan gives (max_tokens where the end of
a text is ignored, else min_tokens; a completed request that stays below voids the window), and with
the largest first chunk, k1: what is drafted a step, and one. A percentile over requests and a
median over boots err by no more than what they are taken of.

A rate errs by what the length of its window does, and a count of requests that meet an objective by
those of them that lie too near to the threshold; both are taken from the records themselves
(analysis/claiming/leading.py). A claim that one arm is ahead of another in such a rate, be it as a
ratio or as an order, stands where the least that the first may have is above the most that the
other may. A claim that none, any or all requests meet an objective stands where no single request
too near to the threshold could make it another. So `thresholds_lost` rests on who is fastest and,
at each threshold, on who has more; `goodput_of_fastest` on who is fastest and on whether any
request of it meets the objective at all. A spread of rates over boots claims that they differ, and
stands where it is above what the errors of their lengths alone can make. A mean or a share by
itself claims no difference and is held to nothing here, nor is the end of an interval.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.calibration import (
    effect_is_resolved,
    quantity_error_ns,
    stamp_error_ns,
)
from analysis.claiming.claim import Value
from analysis.claiming.reading import StudyRun
from analysis.definitions import definition
from records.plan import Arm, Plan

_NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Unresolved:
    """What a value says and its stamps do not: `got` is what there is, `want` what would do."""

    got: str
    want: str


def unresolved(value: Value, runs: Sequence[StudyRun]) -> Iterator[Unresolved]:
    """The differences, leads and counts that a value rests on where the error of the client's
    stamps alone could make them otherwise.
    """
    for made in value.comparisons:
        if made.effect_ms is not None:
            arms, unit = (made.first, made.second), definition(made.latency).unit
            errors = _latency_errors(made.latency, arms, made.window, made.concurrency, runs)
            yield from _told(arms, made.effect_ms, errors, unit)
    for lead in value.leads:
        arms = (lead.first, lead.second)
        errors = lead.errors or _latency_errors(
            lead.latency, arms, lead.window, lead.concurrency, runs
        )
        yield from _told(arms, abs(lead.values[0] - lead.values[1]), errors, lead.unit)
    for verge in value.verges:
        yield Unresolved(
            f"arm {verge.arm}, window {verge.window}, {verge.objective}: {verge.said}, by "
            f"{verge.undecided} nearer to the threshold than the client's error",
            "what no request so near to it makes otherwise",
        )


def latency_error_ns(
    latency: str, error_ns: float, arm: str, window: str, runs: Sequence[StudyRun]
) -> float:
    """By how much a latency quantity of one arm's window errs at most, ns or ns/token."""
    plans = [run.plan for run in runs if any(one.id == arm for one in run.plan.arms)]
    tokens = min((least_tokens(plan, window) for plan in plans), default=1)
    # The first chunk may be a whole step: the draft's tokens and one.
    drafted = [_drafts(plan.arm(arm)) for plan in plans] + [_decided(run, arm) for run in runs]
    first = 1 + max(drafted, default=0)
    return quantity_error_ns(latency, error_ns, tokens, first)


def least_tokens(plan: Plan, window: str) -> int:
    """The fewest output tokens of a completed request of this window, by its plan; 1 at least."""
    asked = [one.sampling for one in plan.windows if one.id == window]
    least = [one.max_tokens if one.ignore_eos else one.min_tokens for one in asked]
    return max(1, *least) if least else 1


def _told(
    arms: tuple[str, str], difference: float, errors: tuple[float, float], unit: str
) -> Iterator[Unresolved]:
    if not effect_is_resolved(difference, *errors):
        known = math.isfinite(sum(errors))
        both = f"{errors[0]:.4f} and {errors[1]:.4f} {unit}" if known else "unknown"
        yield Unresolved(
            f"{difference:.4f} {unit} between {arms[0]} and {arms[1]}",
            f"more than the errors of both: {both}",
        )


def _latency_errors(
    latency: str,
    arms: tuple[str, str],
    window: str,
    concurrency: int,
    runs: Sequence[StudyRun],
) -> tuple[float, float]:
    """Of both arms, in ms or ms/token."""
    stamp_ns = _stamp_error_ns(concurrency, runs)
    one, two = (latency_error_ns(latency, stamp_ns, arm, window, runs) / _NS_PER_MS for arm in arms)
    return one, two


def _stamp_error_ns(concurrency: int, runs: Sequence[StudyRun]) -> float:
    """E of the worst calibration at this concurrency; inf without one, as nothing is above it."""
    found = [c for run in runs for c in run.calibrations if c.concurrency == concurrency]
    return stamp_error_ns(found) if found else math.inf


def _drafts(arm: Arm) -> int:
    config = json.loads(arm.speculative_config) if arm.speculative_config else {}
    return int(config.get("num_speculative_tokens", 0))


def _decided(run: StudyRun, arm: str) -> int:
    found = [
        str(boot.decided.facts.get("spec_tokens", ""))
        for boot in run.boots
        if boot.started.arm == arm and boot.decided is not None
    ]
    return max((int(text) for text in found if re.fullmatch("[0-9]{1,6}", text)), default=0)
