"""Cited numbers come out again by a second computation, from the journal's lines alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from analysis.claiming.claim import Value
from audit.counted import RunCount, count_run
from audit.finding import Check, Code, Finding
from audit.paper import paper
from audit.recount import value_of
from audit.repository import RepositoryView

OTHER = Code(
    "RECOUNT01",
    "error",
    "a second computation comes to another value",
    "audit/recount.py computes what claims print a second time, without anything of analysis/: "
    "from the journal's lines, by the definitions of README. Where the two differ, a function "
    "behind a claim was altered, or one of the two is wrong.",
    "git log -p -- analysis audit/recount.py; the value of neither side may be cited",
)
ROUNDED = Code(
    "RECOUNT02",
    "error",
    "a number is rounded until it says something else",
    "A measured number is printed with the decimals that its claim names. Without any, 1.4 and 0.6 "
    "are both 1.",
    "give the claim decimals in analysis/claims.py",
)

_NUMBER = re.compile(r"-?[0-9]+(?:\.([0-9]+))?")
_CLOSE = 1e-9


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Count the runs behind the cited claims again, each once."""
    view = paper(repository)
    counted: dict[str, RunCount] = {}
    for value, citation in view.cited_values():
        study = view.evaluation.studies.get(value.claim.study)
        if study is None:
            continue
        for run in study.runs:
            if run not in counted:
                counted[run] = count_run(repository.data / run / "events.jsonl")
        again = value_of(value.claim.id, study.id, [counted[run] for run in sorted(study.runs)])
        if again is None:
            continue
        for code, got, want in _judge(value, again):
            message = f"{value.claim.id}: {code.title}"
            yield code.at(citation.file, citation.line, message, got, want)


def _judge(value: Value, again: float | str) -> Iterator[tuple[Code, str, str]]:
    """Value and printed text against the second computation: code, got, want."""
    if isinstance(again, str) or isinstance(value.value, str):
        if not again == value.value == value.printed:
            yield OTHER, f"{value.value}, printed {value.printed}", str(again)
        return
    match = _NUMBER.match(value.printed)
    decimals = len(match[1] or "") if match else 0
    printed = float(match[0]) if match else math.nan
    said = float(value.value)
    same = math.isclose(said, again, rel_tol=_CLOSE, abs_tol=_CLOSE)
    near = abs(printed - again) <= 0.5 * 10.0**-decimals * (1 + _CLOSE) + _CLOSE
    if not (same and near):
        yield OTHER, f"{said!r}, printed {value.printed}", repr(again)
    elif decimals == 0 and again != round(again):
        yield ROUNDED, value.printed, repr(again)


CHECK = Check(
    "recount",
    "Cited numbers come out again by a second computation, from the journal's lines alone.",
    (OTHER, ROUNDED),
    check,
)
