"""Records against the published study: a verdict for every claim of paper/published.toml.

Invariant: a claim is decided only by records of what it speaks of (plan, engine, GPU); others are
shown beside it as not applicable; each claim has at least one verdict, also without any record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from statistics import fmean

from analysis.claiming import quantities
from analysis.claiming.reading import Reading, StudyRun
from analysis.comparing.decision_rule import Decided, coefficient, spread_within
from analysis.comparing.decisions import decided, unlike
from analysis.comparing.family import Pending, settle
from analysis.comparing.kinds import Found, chosen, none_meets
from analysis.comparing.soundness import unsound
from analysis.comparing.stratum import CPU, Stratum
from analysis.comparing.verdict import Interval, Verdict
from analysis.metrics import WindowMetrics
from analysis.published import Measured, Published, Subject
from analysis.statistics.dispersion import cv_interval
from analysis.study import StudyStratum, merge
from analysis.texts import arms_apart
from records.errors import ClaimError

_NS_PER_S = 1_000_000_000
# Two boots have a spread, but one difference says nothing about it.
_LEAST_FREE = 2
_LEAST_FOR_SHAPE = 5
_TOO_FEW = "too few boots for a spread with an interval; three on one host are the least"
_TESTS = {
    "cv-margin": "CV over boots within hosts, modified McKay interval (Vangel 1996), Holm",
    "kind": "the same word in every boot",
    "zero-goodput": "no request of the fastest arm meets the objective; slower arms do",
}


def published_verdicts(
    runs: Sequence[StudyRun], published: Mapping[str, Published], alpha: float = 0.05
) -> tuple[Verdict, ...]:
    """The verdicts over these sealed runs, in the order of the file; one a stratum that has any.

    `runs`: of any plans, as `read_study_run` gives them. `alpha`: of the whole family (Holm).
    Errors: as `analysis.study.merge`.
    """
    studies = merge(runs)
    pending = [one for claim in published.values() for one in _verdicts(claim, studies, alpha)]
    return settle(pending, alpha)


@dataclass(frozen=True, slots=True)
class _Case:
    """One claim held against the records of one stratum."""

    claim: Published
    place: Measured
    study: StudyStratum
    alpha: float

    def reading(self) -> Reading:
        return Reading(self.place.plan, self.study.runs)


def _verdicts(claim: Published, studies: Sequence[StudyStratum], alpha: float) -> list[Pending]:
    places = {place.plan: place for place in claim.measured}
    cases = [
        _Case(claim, places[study.plan.id], study, alpha)
        for study in studies
        if study.plan.id in places
    ]
    found = [_judged(case) for case in cases]
    return found or [Pending(_verdict(claim, "inconclusive", _no_record(claim)))]


def _judged(case: _Case) -> Pending:
    """Decide, or show what was measured beside a claim that it does not decide."""
    why = _not_of(case.claim.of, case.study.stratum) or _otherwise(case)
    reading = case.reading()
    try:
        pending = _tested(case, reading)
    except ClaimError as error:
        pending = Pending(_verdict(case.claim, "inconclusive", error.message))
    runs = tuple(run.run_id for run in case.study.runs)
    verdict = replace(pending.verdict, stratum=case.study.told, runs=runs, lines=reading.lines)
    if why:
        # What was measured stays visible; a decision by it would be of another claim.
        beside = pending.decided
        verdict = replace(
            verdict,
            outcome="not applicable",
            reason=f"{why}; the claim is of {case.claim.of}: shown beside it, not compared",
            interval=beside.interval if beside else None,
            test="none",
        )
        return Pending(verdict)
    barred = _before(case) or unsound(case.study.runs)
    if barred:
        return Pending(replace(verdict, outcome="inconclusive", reason=barred, test="none"))
    return Pending(verdict, pending.decided)


def _tested(case: _Case, reading: Reading) -> Pending:
    claim, place = case.claim, case.place
    if claim.test == "kind":
        return Pending(_of_kind(claim, chosen(claim, place.arms[0], reading), case))
    if claim.test == "zero-goodput":
        found = none_meets(claim, place.arms, place.window, reading)
        windows = [w for arm in place.arms for w in reading.windows(arm, place.window)]
        apart = arms_apart(combinations(place.arms, 2), windows)
        blocks = [f"of {one.told}" for one in reading.abreast if one.told]
        found = replace(found, reason="; ".join((found.reason, *blocks, *apart)))
        return Pending(_of_kind(claim, found, case))
    return _spread(case, reading)


def _of_kind(claim: Published, found: Found, case: _Case) -> Verdict:
    return replace(
        _verdict(claim, found.outcome, found.reason),
        measured=found.measured,
        value=found.value,
        boots=found.boots,
        hosts=len(case.study.hosts),
    )


def _spread(case: _Case, reading: Reading) -> Pending:
    claim, (arm, *_) = case.claim, case.place.arms
    windows = reading.windows(arm, case.place.window)
    differing = list(unlike([event.facts for event in reading.decisions(arm)]))
    if differing:
        name, answers = differing[0]
        why = f"the boots of arm {arm} are no replicates: they decided {name} as {answers}"
        return Pending(_verdict(claim, "inconclusive", why))
    by_host = _by_host(windows, claim, case.study)
    spread = spread_within(by_host)
    if spread is None or claim.bounds is None:
        return Pending(replace(_verdict(claim, "inconclusive", _TOO_FEW), boots=len(windows)))
    verdict = replace(
        _verdict(claim, "inconclusive", ""),
        measured=f"{100 * spread.cv:.2f} %",
        value=100 * spread.cv,
        boots=spread.boots,
        hosts=spread.hosts,
    )
    if spread.free < _LEAST_FREE:
        return Pending(replace(verdict, reason=_TOO_FEW))
    low, high = claim.bounds
    found = _percent(coefficient(spread, (low / 100, high / 100), case.alpha))
    return Pending(replace(verdict, reason=_whatever_shape(by_host, found, claim.bounds)), found)


def _whatever_shape(
    by_host: Mapping[str, Sequence[float]], found: Decided, margin: tuple[float, float]
) -> str:
    """What boots that are not normal would make of the outcome, where it is another; else "".

    The rule was fixed beforehand and decides; analysis/statistics/COVERAGE.md says how far its
    interval may be trusted for boots in groups or with a slow tail.
    """
    relative = [value / fmean(values) for values in by_host.values() for value in values]
    if len(relative) < _LEAST_FOR_SHAPE:
        return ""
    wide = cv_interval(relative, found.interval.confidence, "widest")
    low, high = 100 * wide.low, 100 * wide.high
    if _lies(found.interval.low, found.interval.high, margin) == _lies(low, high, margin):
        return ""
    return (
        f"an interval that does not assume normal boots reaches from {low:.2f} to {high:.2f} %, "
        "which would say otherwise: look at the boots"
    )


def _lies(low: float, high: float, margin: tuple[float, float]) -> str:
    if margin[0] < low and high < margin[1]:
        return "within"
    return "outside" if low > margin[1] or high < margin[0] else "across"


def _percent(decided: Decided) -> Decided:
    interval = decided.interval
    return replace(
        decided,
        estimate=100 * decided.estimate,
        interval=Interval(100 * interval.low, 100 * interval.high, interval.confidence),
    )


def _by_host(
    windows: Sequence[WindowMetrics], claim: Published, study: StudyStratum
) -> dict[str, list[float]]:
    measure = (
        quantities.throughput if claim.quantity == "throughput" else quantities.acceptance_length
    )
    hosts = {run.run_id: run.boot_hosts for run in study.runs}
    found: dict[str, list[float]] = {}
    for window in windows:
        found.setdefault(hosts[window.run_id][window.boot], []).append(measure(window))
    return found


def _verdict(claim: Published, outcome: str, reason: str) -> Verdict:
    margin = claim.margin
    bounds = claim.bounds
    return Verdict(
        claim.id,
        claim.text,
        claim.printed,
        claim.unit,
        outcome,  # type: ignore[arg-type]
        reason,
        _TESTS[claim.test],
        margin=f"{100 * margin.relative:.0f} % of it, fixed {margin.fixed}" if margin else "",
        bounds=Interval(*bounds, 1.0) if bounds else None,
    )


def _not_of(subject: Subject, stratum: Stratum) -> str:
    """Why records of this stratum do not decide a claim of this subject; "" where they do."""
    if stratum.synthetic:
        return "measured against the reference server, which is no engine"
    if stratum.capability == CPU:
        return f"measured on a CPU ({stratum.accelerator})"
    if stratum.capability != subject.capability:
        known = f"compute capability {stratum.capability}"
        return f"measured on another architecture ({stratum.accelerator}, {known})"
    if subject.gpu and stratum.accelerator != subject.gpu:
        return f"measured on another GPU ({stratum.accelerator})"
    if stratum.engine != subject.engine:
        return f"measured on another engine ({stratum.engine})"
    return ""


def _otherwise(case: _Case) -> str:
    """What the engine decided in an arm that the claim is not of; "" where it fits."""
    arms = set(case.place.arms)
    boots = [boot for run in case.study.runs for boot in run.boots if boot.started.arm in arms]
    facts = [boot.decided.facts for boot in boots if boot.decided is not None]
    for name, want in case.claim.decided.items():
        got = decided(facts, name)
        if facts and got != want:
            return f"the engine decided {name} as {got}, where the claim is of {want}"
    return ""


def _before(case: _Case) -> str:
    """Why the rule was not fixed beforehand; "" where it was."""
    claim = case.claim
    fixed = max(claim.fixed, claim.margin.fixed if claim.margin else "")
    first = min(run.started.clock.realtime_ns for run in case.study.runs)
    day = datetime.fromtimestamp(first // _NS_PER_S, UTC).date().isoformat()
    return (
        f"records of {day}, but test or margin was fixed on {fixed}, after them"
        if day < fixed
        else ""
    )


def _no_record(claim: Published) -> str:
    if not claim.measured:
        return "no plan measures it"
    plan = claim.measured[0].plan
    return (
        f"no record of plan {plan} here; make reproduce PLAN={plan} HOST=user@host on a host with "
        f"{claim.of.gpu or 'compute capability ' + claim.of.capability} makes one, and "
        "kit plan list says what it still lacks"
    )
