"""Verdicts that were made together: Holm's adjustment over those that rest on a p value.

Invariant: a decision stands only if its adjusted p is at most alpha; what falls back to
inconclusive says that it did, and how many boots would carry it.

One decision a verdict enters: the smaller of the two p values of analysis/comparing/decision_rule,
which cannot both be small. Holm's steps also bound the chance of a decision in the wrong direction
(J. P. Shaffer, Annals of Statistics 8 (1980) 1342-1347).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.comparing.decision_rule import Decided
from analysis.comparing.verdict import Outcome, Verdict
from analysis.statistics.multiplicity import holm


@dataclass(frozen=True, slots=True)
class Pending:
    """A verdict before its family is known; without `decided` it stands as it is.

    `unit`: what is counted in `boots` and would be needed: boots, or hosts. `sides`: 2 where both
    sides of a comparison would need so many.
    """

    verdict: Verdict
    decided: Decided | None = None
    unit: str = "boots"
    sides: int = 1


def settle(pending: Sequence[Pending], alpha: float = 0.05) -> tuple[Verdict, ...]:
    """The verdicts in their order, each decided at the level of the whole family."""
    tested = [one.decided.p for one in pending if one.decided is not None]
    adjusted = iter(holm(tested)) if tested else iter(())
    return tuple(
        one.verdict
        if one.decided is None
        else _settled(one, one.decided, next(adjusted), len(tested), alpha)
        for one in pending
    )


def _settled(one: Pending, decided: Decided, p_holm: float, family: int, alpha: float) -> Verdict:
    alone: Outcome = "inconclusive"
    if decided.p <= alpha:
        alone = "reproduced" if decided.leans_within else "contradicted"
    outcome: Outcome = alone if p_holm <= alpha else "inconclusive"
    needed = decided.needed(alpha / family) if outcome == "inconclusive" else None
    if needed is not None and one.unit == "boots":
        needed = max(needed, one.verdict.boots + 1)  # so many as there are did not decide it
    reason = _reason(one, decided, alone, outcome, family, needed)
    if one.verdict.reason:
        reason = f"{reason}; {one.verdict.reason}"
    return replace(
        one.verdict,
        outcome=outcome,
        reason=reason,
        interval=decided.interval,
        p=decided.p,
        p_holm=p_holm,
        needed_boots=needed if one.unit == "boots" else None,
    )


def _reason(
    one: Pending,
    decided: Decided,
    alone: Outcome,
    outcome: Outcome,
    family: int,
    needed: int | None,
) -> str:
    if outcome == "reproduced":
        return "the interval lies within the margin"
    if outcome == "contradicted":
        bounds = one.verdict.bounds
        side = "above" if bounds is None or decided.estimate > bounds.high else "below"
        return f"the interval lies wholly {side} the margin"
    told = "the interval reaches across an end of the margin"
    if alone != "inconclusive":
        where = "within" if alone == "reproduced" else "outside"
        told = f"{where} the margin if tested alone, not as one of {family} tests (Holm)"
    a_side = " a side" if one.sides == 2 else ""
    if needed is None:
        return f"{told}, too near to it for any affordable number of {one.unit}"
    return f"{told}; about {needed} {one.unit}{a_side} would decide it, if the value is as seen"
