"""Records against other records: every quantity of every arm and window that both sides have.

Invariant: only like is compared with like (same accelerator, driver, engine version, arm, window,
and decisions of the engine); of anything else the ratio is shown as not applicable, with the
difference named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import fmean

from analysis.claiming.reading import Reading, StudyRun
from analysis.comparing.decision_rule import Decided, log_ratio
from analysis.comparing.decisions import apart, unlike
from analysis.comparing.family import Pending, settle
from analysis.comparing.quantity import Quantity, client_error, quantities_of, turning
from analysis.comparing.sides import ByHost, Difference, log_difference
from analysis.comparing.soundness import unsound
from analysis.comparing.verdict import Interval, Outcome, Verdict
from analysis.metrics import WindowMetrics
from analysis.study import StudyStratum, closed_note, merge
from analysis.table import number
from analysis.texts import apart_in_text
from records.errors import CalibrationError, ClaimError
from records.plan import Plan

DEFAULT_MARGIN = 0.05
_TEST = "two one-sided tests on the log ratio over {} (Schuirmann 1987), Holm"
# A share of a value beyond which its logarithm says nothing.
_MOST_ERROR = 0.99
# Without any spread a test knows no error, and two equal values do not show that there is none.
_LEAST_ALIKE = 3
_NO_SPREAD = 1e-12  # of a mean of logs, by rounding alone
# What of a plan does not change what one window of one arm measures.
_HARMLESS = {
    "id", "title", "seed", "blocks", "requirements", "calibration", "estimates", "thresholds_ms",
    "arms", "windows",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """How two sides are judged. `margins`: by quantity id, where not `margin`; fractions.

    `only`: no others than verdicts whose id contains one of these, so that the family is no larger
    than what is asked; empty for all.
    """

    margin: float = DEFAULT_MARGIN
    margins: Mapping[str, float] = field(default_factory=dict)
    threshold_ms: int | None = None
    only: tuple[str, ...] = ()
    alpha: float = 0.05

    def margin_of(self, quantity: str) -> float:
        """The margin of one quantity."""
        return self.margins.get(quantity, self.margin)


def compared_verdicts(
    mine: Sequence[StudyRun], theirs: Sequence[StudyRun], rule: Rule = Rule()
) -> tuple[Verdict, ...]:
    """Mine over theirs, by plan, arm, window and quantity; all verdicts are one family (Holm).

    A stratum of mine is held against those strata of theirs that are like it; where none is,
    against each, as not applicable. `theirs` is the reference: margins are relative to it. Errors:
    as `analysis.study.merge`.
    """
    others = merge(theirs)
    pending: list[Pending] = []
    for study in merge(mine):
        same_plan = [other for other in others if other.plan.id == study.plan.id]
        like = [other for other in same_plan if not _unlike_strata(study, other)]
        for other in like or same_plan:
            pending += _Pair(study, other, rule).verdicts()
        if not same_plan:
            why = f"no record of plan {study.plan.id} on the other side"
            pending.append(Pending(_none(study, why)))
    return settle(pending, rule.alpha)


def _unlike_strata(study: StudyStratum, other: StudyStratum) -> str:
    """Why two strata are not like each other; "" where they are."""
    found = [
        f"other {name}: {two} there, {one} here"
        for name, one, two in study.stratum.differences(other.stratum)
    ]
    return "; ".join([*found, *_unlike_plans(study.plan, other.plan)])


def _unlike_plans(plan: Plan, other: Plan) -> Iterator[str]:
    for one in fields(Plan):
        if one.name not in _HARMLESS and getattr(plan, one.name) != getattr(other, one.name):
            yield f"other plan: {one.name} differs"


@dataclass(frozen=True, slots=True)
class _Side:
    study: StudyStratum
    reading: Reading

    @classmethod
    def of(cls, study: StudyStratum) -> _Side:
        return cls(study, Reading(study.plan.id, study.runs))

    def windows(self, arm: str, window: str) -> tuple[WindowMetrics, ...]:
        try:
            return self.reading.windows(arm, window)
        except ClaimError:
            return ()

    def decisions(self, arm: str) -> list[Mapping[str, object]]:
        try:
            return [event.facts for event in self.reading.decisions(arm)]
        except ClaimError:
            return []

    def by_host(self, quantity: Quantity, windows: Sequence[WindowMetrics]) -> ByHost:
        hosts = {run.run_id: run.boot_hosts for run in self.study.runs}
        found: dict[str, list[float]] = {}
        for window in windows:
            value = quantity.of(window)
            if value is not None:
                found.setdefault(hosts[window.run_id][window.boot], []).append(value)
        return found


@dataclass(frozen=True, slots=True)
class _Pair:
    mine: StudyStratum
    theirs: StudyStratum
    rule: Rule

    def verdicts(self) -> Iterator[Pending]:
        """One a quantity, for each arm and window of mine."""
        whole = _unlike_strata(self.mine, self.theirs) or unsound(
            (*self.mine.runs, *self.theirs.runs)
        )
        for arm in self.mine.plan.arms:
            sides = _Side.of(self.mine), _Side.of(self.theirs)
            why = whole or self._unlike_arms(arm.id, sides)
            for window in self.mine.plan.windows:
                found = sides[0].windows(arm.id, window.id), sides[1].windows(arm.id, window.id)
                other = why or self._unlike_windows(window.id)
                yield from self._cell(f"{arm.id}.{window.id}", other, sides, found)

    def _unlike_arms(self, arm: str, sides: tuple[_Side, _Side]) -> str:
        here, there = self.mine.plan, self.theirs.plan
        if arm not in {one.id for one in there.arms}:
            return f"the other side's plan has no arm {arm}"
        # In which blocks an arm stands changes nothing of a boot.
        if replace(here.arm(arm), blocks=()) != replace(there.arm(arm), blocks=()):
            return f"arm {arm} is configured otherwise there"
        first, second = (side.decisions(arm) for side in sides)
        for name, answers in (*unlike(first), *unlike(second)):
            return f"boots of one side did not decide alike: {name} {answers}"
        for name, one, two in apart(first, second) if first and second else ():
            return f"the engine decided otherwise: {name} {two} there, {one} here"
        return ""

    def _unlike_windows(self, window: str) -> str:
        here, there = (
            {one.id: one for one in plan.windows} for plan in (self.mine.plan, self.theirs.plan)
        )
        if window not in there:
            return f"the other side's plan has no window {window}"
        return "" if here[window] == there[window] else f"window {window} is another load there"

    def _cell(
        self,
        where: str,
        why: str,
        sides: tuple[_Side, _Side],
        found: tuple[tuple[WindowMetrics, ...], tuple[WindowMetrics, ...]],
    ) -> Iterator[Pending]:
        if not found[0] or not found[1]:
            which = "here" if not found[0] else "on the other side"
            why = why or f"no usable window of it {which}"
        for quantity in quantities_of(self.mine.plan, self.rule.threshold_ms):
            first, second = (
                side.by_host(quantity, windows) for side, windows in zip(sides, found, strict=True)
            )
            if not first and not second and found[0] and found[1]:
                continue  # acceptance, where nothing is drafted
            id_ = f"{self.mine.plan.id}.{where}.{quantity.id}"
            if self.rule.only and not any(part in id_ for part in self.rule.only):
                continue
            shown = self._shown(id_, quantity, sides)
            shown = _values(shown, quantity, first, second)
            if why:
                yield Pending(replace(shown, outcome="not applicable", reason=why, test="none"))
            else:
                pending = self._judged(shown, quantity, sides, found, first, second)
                of_text = quantity.latency or quantity.id == "acceptance"
                yield _noted(pending, apart_in_text(*found)) if of_text else pending

    def _shown(self, id_: str, quantity: Quantity, sides: tuple[_Side, _Side]) -> Verdict:
        margin = self.rule.margin_of(quantity.id)
        lines = tuple(sorted({line for side in sides for line in side.reading.lines}))
        return Verdict(
            id_,
            f"{quantity.id}, mine over theirs",
            "",
            quantity.unit,
            "inconclusive",
            "",
            _TEST.format("boots"),
            margin=f"{100 * margin:g} % of the reference",
            bounds=Interval(1 - margin, 1 + margin, 1.0),
            stratum=f"{self.mine.stratum}{closed_note((*self.mine.closed, *self.theirs.closed))}",
            runs=tuple(run.run_id for side in sides for run in side.study.runs),
            lines=lines,
        )

    def _judged(
        self,
        shown: Verdict,
        quantity: Quantity,
        sides: tuple[_Side, _Side],
        found: tuple[tuple[WindowMetrics, ...], tuple[WindowMetrics, ...]],
        first: ByHost,
        second: ByHost,
    ) -> Pending:
        one, two = ([v for values in side.values() for v in values] for side in (first, second))
        if not one or not two:
            return Pending(replace(shown, reason="undefined in the windows of one side"))
        if min(*one, *two) <= 0:
            near = sum(turning(quantity, windows) for windows in found)
            return Pending(_near(shown, near) if near else _zeros(shown, one, two))
        try:
            errors = [
                client_error(quantity, fmean(values), windows, side.study.runs)
                for values, windows, side in zip((one, two), found, sides, strict=True)
            ]
        except CalibrationError as error:
            return Pending(replace(shown, reason=error.message))
        difference = log_difference(first, second)
        if difference is None:
            return Pending(replace(shown, reason="two boots a side are the least", value=None))
        if difference.error < _NO_SPREAD and _fewest(difference, one, two) < _LEAST_ALIKE:
            return Pending(replace(shown, reason=_too_few_alike(difference.unit), value=None))
        margin = self.rule.margin_of(quantity.id)
        slack = -sum(math.log1p(-min(error, _MOST_ERROR)) for error in errors)
        decided: Decided = log_ratio(
            difference.difference,
            difference.error,
            difference.free,
            (1 - margin, 1 + margin),
            slack,
            self.rule.alpha,
            difference.samples,
        )
        note = difference.note
        if slack > margin / 4:
            client = f"the client's own error may be {100 * math.expm1(slack):.1f} % of the ratio"
            note = f"{note}; {client}" if note else client
        verdict = replace(
            shown,
            measured=number(decided.estimate, 4),
            value=decided.estimate,
            reason=note,
            test=_TEST.format(difference.unit),
        )
        return Pending(verdict, decided, difference.unit, sides=2)


def _values(shown: Verdict, quantity: Quantity, first: ByHost, second: ByHost) -> Verdict:
    """The means of both sides, and the ratio where there is one."""
    one, two = ([v for values in side.values() for v in values] for side in (first, second))
    ratio = fmean(one) / fmean(two) if one and two and fmean(two) > 0 else None
    published = f"{number(fmean(two), 3)} {quantity.unit}" if two else ""
    return replace(
        shown,
        published=published,
        measured=number(ratio, 4) if ratio is not None else "",
        value=ratio,
        boots=min(len(one), len(two)),
        hosts=len(first.keys() | second.keys()),
    )


def _noted(pending: Pending, note: str) -> Pending:
    """The same with a note behind what is said of it already."""
    reasons = [text for text in (pending.verdict.reason, note) if text]
    return replace(pending, verdict=replace(pending.verdict, reason="; ".join(reasons)))


def _zeros(shown: Verdict, one: Sequence[float], two: Sequence[float]) -> Verdict:
    """Rates of nothing have no ratio: they are the same, apart, or mixed."""
    if min(len(one), len(two)) < _LEAST_ALIKE:
        return replace(shown, reason=f"0 in a boot; {_too_few_alike('boots')}", value=None)
    none = [not any(values) for values in (one, two)]
    outcome: Outcome = "inconclusive"
    if all(none):
        outcome, why = "reproduced", "0 in every boot of both sides"
    elif any(none) and all(
        min(values) > 0 for values, zero in zip((one, two), none, strict=True) if not zero
    ):
        outcome, why = "contradicted", "0 in every boot of one side and in none of the other"
    else:
        why = "0 in some boots, which have no ratio"
    return replace(shown, outcome=outcome, reason=why, test="0 in every boot", value=None)


def _near(shown: Verdict, requests: int) -> Verdict:
    """No ratio, and no 0 either."""
    why = f"whether any meets the objective turns on requests within the client's error: {requests}"
    return replace(shown, reason=why, value=None)


def _too_few_alike(unit: str) -> str:
    return f"{unit} without a spread: {_LEAST_ALIKE} {unit} a side are the least to decide"


def _fewest(difference: Difference, one: Sequence[float], two: Sequence[float]) -> int:
    """Replicates of the side that has fewer: boots, or hosts."""
    if difference.unit == "boots":
        return min(len(one), len(two))
    return round(difference.free / difference.samples) + 1


def _none(study: StudyStratum, why: str) -> Verdict:
    return Verdict(
        study.plan.id,
        study.plan.title,
        "",
        "",
        "not applicable",
        why,
        "none",
        stratum=study.told,
        runs=tuple(run.run_id for run in study.runs),
    )
