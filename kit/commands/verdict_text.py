"""Verdicts for people: a line each, then every reason once; no verb of its own.

Invariant: no verdict is left out, and each one's reason stands below with its name.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from analysis.comparing.tables import counted, interval_text
from analysis.comparing.verdict import Verdict
from analysis.study_tables import letter
from kit.commands.study_text import WIDTH

_On = tuple[str, tuple[str, ...]]
_ORDER = ("contradicted", "inconclusive", "not applicable", "reproduced")
_HEAD = ("claim", "held against", "measured", "interval", "boots", "hosts", "outcome")


def verdict_lines(title: str, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The table, the reasons, and the count."""
    prefix = _common(verdicts)
    marks = _marks(verdicts)
    yield f"{title}{f'; every name begins with {prefix}' if prefix else ''}\n"
    head = tuple(_level(verdicts) if word == "interval" else word for word in _HEAD)
    rows = [head, *[_row(verdict, prefix, marks) for verdict in verdicts]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for number, row in enumerate(rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)
    yield ""
    for on, mark in marks.items():
        yield from _wrapped(f"[{mark}] {on[0]}: {', '.join(on[1])}")
    for (outcome, reason), names in _reasons(verdicts, prefix, marks):
        yield from _wrapped(f"{outcome}: {reason}")
        yield from _wrapped(", ".join(names), "  ")
    yield f"\n{counted(verdicts)}"


def _level(verdicts: Sequence[Verdict]) -> str:
    """The heading of the intervals, with their level where they share one."""
    levels = {verdict.interval.confidence for verdict in verdicts if verdict.interval}
    return f"{100 * levels.pop():g} % interval" if len(levels) == 1 else "interval"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def _marks(verdicts: Sequence[Verdict]) -> dict[_On, str]:
    """A letter for each set of records, where one claim has a verdict on several of them."""
    ids = [verdict.id for verdict in verdicts]
    if len(set(ids)) == len(ids):
        return {}
    found = dict.fromkeys((v.stratum, v.runs) for v in verdicts if v.runs)
    return {on: letter(place) for place, on in enumerate(found)}


def _name(verdict: Verdict, prefix: str, marks: dict[_On, str]) -> str:
    mark = marks.get((verdict.stratum, verdict.runs))
    name = verdict.id.removeprefix(prefix)
    return f"{name} [{mark}]" if mark else name


def _row(verdict: Verdict, prefix: str, marks: dict[_On, str]) -> tuple[str, ...]:
    return (
        _name(verdict, prefix, marks),
        verdict.published,
        verdict.measured,
        interval_text(verdict),
        str(verdict.boots or ""),
        str(verdict.hosts or ""),
        verdict.outcome,
    )


def _reasons(
    verdicts: Sequence[Verdict], prefix: str, marks: dict[_On, str]
) -> list[tuple[tuple[str, str], list[str]]]:
    """Each outcome and reason once, with the claims that it is of; the gravest first."""
    found: dict[tuple[str, str], list[str]] = {}
    for verdict in verdicts:
        key = (verdict.outcome, verdict.reason)
        found.setdefault(key, []).append(_name(verdict, prefix, marks))
    return sorted(found.items(), key=lambda item: _ORDER.index(item[0][0]))


def _common(verdicts: Sequence[Verdict]) -> str:
    """`<plan>.` where all verdicts are of one plan's arms."""
    first = {verdict.id.partition(".")[0] + "." for verdict in verdicts}
    compared = all(verdict.id.count(".") >= 3 for verdict in verdicts)
    return first.pop() if compared and len(first) == 1 else ""
