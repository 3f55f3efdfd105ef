"""Verdicts as a table, as plain values, and as a count in words.

Invariant: every verdict has a row, its reason with it; nothing is rounded before it is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analysis.comparing.verdict import OUTCOMES, Verdict
from analysis.table import MISSING, Column, Table, number, words

_NOTES = (
    "Reproduced: the interval lies within the margin. Contradicted: wholly outside of it.",
    "Interval: of confidence 0.90, as two one-sided tests at 0.05 have it; of one verdict alone.",
    "p: of the decision by itself; adjusted: for all verdicts of this table together (Holm 1979).",
    "Needed: how many boots (a side, where two are compared) decide with power 0.8, as seen.",
)


def verdicts_table(verdicts: Sequence[Verdict], title: str) -> Table:
    """One row a verdict."""
    return Table(
        "verdicts",
        title,
        _NOTES,
        (
            *words("claim", "on", "held against", "measured"),
            *[Column(name) for name in ("low", "high", "margin low", "margin high")],
            *[Column(name) for name in ("boots", "hosts", "p", "p adjusted", "needed")],
            *words("outcome", "reason"),
        ),
        tuple(_row(verdict) for verdict in verdicts),
    )


def counted(verdicts: Sequence[Verdict]) -> str:
    """How many there are of each outcome."""
    outcomes = [verdict.outcome for verdict in verdicts]
    return ", ".join(f"{outcomes.count(name)} {name}" for name in OUTCOMES)


def as_objects(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Verdicts as plain values; a journal line as `<run>:<line>`, counted from 1."""
    return [
        {**asdict(verdict), "lines": [f"{line.run}:{line.number}" for line in verdict.lines]}
        for verdict in verdicts
    ]


def interval_text(verdict: Verdict) -> str:
    """The interval as `low .. high`; "" where there is none."""
    if verdict.interval is None:
        return ""
    digits = _digits(verdict)
    return f"{number(verdict.interval.low, digits)} .. {number(verdict.interval.high, digits)}"


def _row(verdict: Verdict) -> tuple[str, ...]:
    digits = _digits(verdict)
    ends = [
        number(end, digits)
        for interval in (verdict.interval, verdict.bounds)
        for end in ((interval.low, interval.high) if interval else (None, None))
    ]
    return (
        verdict.id,
        verdict.stratum or MISSING,
        verdict.published or MISSING,
        verdict.measured or MISSING,
        *ends,
        str(verdict.boots),
        str(verdict.hosts),
        number(verdict.p, 5),
        number(verdict.p_holm, 5),
        str(verdict.needed_boots) if verdict.needed_boots is not None else MISSING,
        verdict.outcome,
        verdict.reason,
    )


def _digits(verdict: Verdict) -> int:
    """Of percentages two decimals, of ratios four."""
    return 2 if verdict.unit == "%" else 4
