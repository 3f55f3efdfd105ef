"""Verdicts as the page shows them: the outcome, what it was decided by, and a strip to see it.

Invariant: nothing is decided here; every word and number is the verdict's own
(analysis/comparing/verdict.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from analysis.comparing.verdict import OUTCOMES, Interval, Verdict
from analysis.report.claim_views import ClaimBook
from analysis.report.model import NotApplicable, Strip, VerdictGroup, VerdictView
from analysis.report.sources import SourceBook
from analysis.study_tables import letter

_NOT_APPLICABLE = "not applicable"
_EDGE = 0.08  # how much of the strip is left free on both sides


class VerdictBook:
    """The verdicts as the page shows them; what decides nothing, by the reason why it does not."""

    def __init__(self, verdicts: Sequence[Verdict], sources: SourceBook, claims: ClaimBook) -> None:
        self._names = _names(verdicts)
        self._sources = sources
        self._claims = claims
        rank = {outcome: place for place, outcome in enumerate(OUTCOMES)}
        ordered = sorted(verdicts, key=lambda one: rank[one.outcome])
        views = [self._view(one) for one in ordered]
        self.decided = tuple(one for one in views if one.kind != _NOT_APPLICABLE)
        self.not_applicable = tuple(_by_reason(one for one in views if one.kind == _NOT_APPLICABLE))

    @property
    def groups(self) -> tuple[VerdictGroup, ...]:
        """The records that the verdicts are of, in the order of the verdicts."""
        return tuple(
            VerdictGroup(name, _split(on)[1], runs) for (on, runs), name in self._names.items()
        )

    def _view(self, verdict: Verdict) -> VerdictView:
        claim = self._claims.view(verdict.id)
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
        lines = f"verdict on {verdict.id}"
        level = f"{100 * verdict.interval.confidence:g} %: " if verdict.interval else ""
        return VerdictView(
            verdict.outcome,
            verdict.id,
            verdict.text,
            verdict.published,
            verdict.measured,
            same.anchor if same else self._sources.of_lines(lines, verdict.lines),
            self._names.get((verdict.stratum, verdict.runs), ""),
            level + _text(verdict.interval),
            str(verdict.boots or ""),
            verdict.reason,
            tuple((name, text) for name, text in facts if text),
            strip(verdict),
        )


def _names(verdicts: Sequence[Verdict]) -> dict[tuple[str, tuple[str, ...]], str]:
    """Stratum and runs -> a name; with the letters of `kit compare` where there are several."""
    found = list(dict.fromkeys((v.stratum, v.runs) for v in verdicts if v.runs))
    short = [_split(stratum)[0] for stratum, _ in found]
    if len(found) == 1:
        return dict(zip(found, short, strict=True))
    return {on: f"{letter(i)}: {short[i]}" for i, on in enumerate(found)}


def _split(stratum: str) -> tuple[str, str]:
    """Its accelerator, and what else it says (analysis/comparing/stratum.py has the order)."""
    name, _, rest = stratum.removeprefix("SYNTHETIC, ").partition(", ")
    return name, rest


def _by_reason(views: Iterable[VerdictView]) -> Iterator[NotApplicable]:
    found: dict[str, list[VerdictView]] = {}
    for view in views:
        found.setdefault(view.reason, []).append(view)
    for number, (reason, alike) in enumerate(found.items(), 1):
        yield NotApplicable(f"not-applicable-{number}", reason, tuple(alike))


def verdict_counts(verdicts: Sequence[Verdict]) -> tuple[tuple[str, int], ...]:
    """How many there are of each outcome, those without any included."""
    counted = Counter(one.outcome for one in verdicts)
    return tuple((outcome, counted[outcome]) for outcome in OUTCOMES)


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
