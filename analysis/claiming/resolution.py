"""Which claims say more than the client's calibrated error leaves standing.

Invariant: a value rests on nothing below the error of its stamps without being told here.

A stamp is late by 0 to E (analysis/calibration.py), so a time between two stamps, or between a
sending and a stamp, errs by at most E. A quantity per token is such a time over a request's tokens:
TPOT(n-1) errs by E / (n - 1), TPOT(n-k1) by E / (n - k1), NTPOT by E / n. The bound is greatest for
the request with the fewest tokens, n, which the window's plan gives (max_tokens where the end of
a text is ignored, else min_tokens; a completed request that stays below voids the window), and with
the largest first chunk, k1: what is drafted a step, and one. A percentile over requests and a
median over boots err by no more than what they are taken of. A rate over a window errs by E over
its length.
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
    relative_error,
    stamp_error_ns,
)
from analysis.claiming.claim import Value
from analysis.claiming.reading import Lead, StudyRun
from analysis.definitions import definition
from records.plan import Arm, Plan

_NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A difference of two arms, and the error of each: inf where nothing was calibrated."""

    first: str
    second: str
    difference: float
    errors: tuple[float, float]
    unit: str


def unresolved(value: Value, runs: Sequence[StudyRun]) -> Iterator[Unresolved]:
    """The differences of times that a value claims, and the leads that its rankings rest on, where
    they are not above the errors of both sides.
    """
    for made in value.comparisons:
        if made.effect_ms is not None:
            errors = _latency_errors(
                made.latency, (made.first, made.second), made.window, made.concurrency, runs
            )
            yield from _told(made.first, made.second, made.effect_ms, errors, made.latency)
    for lead in value.leads:
        yield from _told(
            lead.first,
            lead.second,
            abs(lead.values[0] - lead.values[1]),
            _lead_errors(lead, runs),
            lead.latency,
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
    first: str, second: str, difference: float, errors: tuple[float, float], latency: str
) -> Iterator[Unresolved]:
    if not effect_is_resolved(difference, *errors):
        unit = definition(latency).unit if latency else "tok/s"
        yield Unresolved(first, second, difference, errors, unit)


def _lead_errors(lead: Lead, runs: Sequence[StudyRun]) -> tuple[float, float]:
    arms = (lead.first, lead.second)
    if lead.latency:
        return _latency_errors(lead.latency, arms, lead.window, lead.concurrency, runs)
    share = relative_error(_stamp_error_ns(lead.concurrency, runs), lead.wall_ns)
    return (share * lead.values[0], share * lead.values[1])


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
