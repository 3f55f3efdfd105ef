"""Verdicts as the page shows them: the outcome, what it was decided by, and a strip to see it.

Invariant: nothing is decided here; every word and number is the verdict's own
(analysis/comparing/verdict.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from analysis.comparing.verdict import OUTCOMES, Interval, Verdict
from analysis.report.claim_views import ClaimBook
from analysis.report.model import Strip, VerdictView
from analysis.report.sources import SourceBook

_EDGE = 0.08  # how much of the strip is left free on both sides


def verdict_views(
    verdicts: Sequence[Verdict], sources: SourceBook, claims: ClaimBook
) -> tuple[VerdictView, ...]:
    """The verdicts: those with an answer first, each in the order of the published claims."""
    rank = {outcome: place for place, outcome in enumerate(OUTCOMES)}
    return tuple(
        _view(one, sources, claims) for one in sorted(verdicts, key=lambda v: rank[v.outcome])
    )


def verdict_counts(verdicts: Sequence[Verdict]) -> tuple[tuple[str, int], ...]:
    """How many there are of each outcome, those without any included."""
    counted = Counter(one.outcome for one in verdicts)
    return tuple((outcome, counted[outcome]) for outcome in OUTCOMES)


def _view(verdict: Verdict, sources: SourceBook, claims: ClaimBook) -> VerdictView:
    claim = claims.view(verdict.id)
    same = claim if claim and claim.printed == verdict.measured else None
    facts = [
        (_interval_name(verdict.interval), _text(verdict.interval)),
        ("bounds fixed beforehand", _text(verdict.bounds)),
        ("margin", verdict.margin),
        ("test", verdict.test),
        ("p", "" if verdict.p is None else f"{verdict.p:.3g}"),
        ("p, adjusted", "" if verdict.p_holm is None else f"{verdict.p_holm:.3g}"),
        ("boots", str(verdict.boots or "")),
        ("hosts", str(verdict.hosts or "")),
        ("boots that would decide", str(verdict.needed_boots or "")),
        ("measured on", verdict.stratum),
    ]
    return VerdictView(
        verdict.outcome,
        verdict.id,
        verdict.text,
        verdict.published,
        verdict.measured,
        same.anchor if same else sources.of_lines(f"verdict on {verdict.id}", verdict.lines),
        verdict.reason,
        tuple((name, text) for name, text in facts if text),
        strip(verdict),
    )


def strip(verdict: Verdict) -> Strip | None:
    """The interval against the bounds on one scale; None where either is missing."""
    found, bounds = verdict.interval, verdict.bounds
    if found is None or bounds is None:
        return None
    low, high = min(found.low, bounds.low), max(found.high, bounds.high)
    if not 0 < high - low < float("inf"):
        return None
    scale = 100 * (1 - 2 * _EDGE) / (high - low)

    def place(value: float) -> float:
        return 100 * _EDGE + scale * (value - low)

    return Strip(
        f"{place(found.low):.1f}",
        f"{max(scale * (found.high - found.low), 0.6):.1f}",
        f"{place(bounds.low):.1f}",
        f"{scale * (bounds.high - bounds.low):.1f}",
        f"{_interval_name(found)} {_text(found)}; bounds {_text(bounds)}",
    )


def _interval_name(interval: Interval | None) -> str:
    return "" if interval is None else f"{100 * interval.confidence:g} % interval"


def _text(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f"{interval.low:.4g} to {interval.high:.4g}"
