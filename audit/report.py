"""An audit's report for people and for machines, and CHECKS.md.

Invariant: every finding is shown with its file, its line, what is there and what should be.
"""

from __future__ import annotations

import dataclasses
import shlex
import textwrap
from typing import Any

from audit.catalogue import ALL
from audit.finding import Check, Code, Finding, Kind
from audit.runner import Report, explain
from records.errors import (
    AuditConductError,
    AuditDerivedError,
    AuditFailedError,
    AuditHygieneError,
)
from records.limits import printable

_MOST_SHOWN = 20
_MOST_CHARACTERS = 400

# In the order of the exit code that wins: what is not intact is not worth asking further.
KINDS: dict[Kind, tuple[int, str]] = {
    "integrity": (
        AuditFailedError.exit_code,
        "records, lists, signatures or history are not what they were",
    ),
    "conduct": (
        AuditConductError.exit_code,
        "a run was not carried out as its plan and this kit demand",
    ),
    "derived": (
        AuditDerivedError.exit_code,
        "tables, claims, findings or paper are not what the records give",
    ),
    "hygiene": (
        AuditHygieneError.exit_code,
        "secrets, names, addresses or unclear licences in what is published",
    ),
}
_ERRORS: dict[Kind, type[AuditFailedError]] = {
    "integrity": AuditFailedError,
    "conduct": AuditConductError,
    "derived": AuditDerivedError,
    "hygiene": AuditHygieneError,
}


def failure(report: Report) -> AuditFailedError | None:
    """The error that the first class of error findings stands for; None where there is none."""
    codes = {finding.code for finding in report.findings if finding.severity == "error"}
    kinds = {explain(code)[0].kind for code in codes}
    for kind in KINDS:
        if kind in kinds:
            return _ERRORS[kind](
                f"the audit found {report.errors} {_plural('error', report.errors)} "
                f"in {report.data} ({', '.join(k for k in KINDS if k in kinds)})",
                remedy="each finding above names its remedy",
            )
    return None


def as_text(report: Report) -> str:
    """Errors first, grouped by check and code, each with its remedy; then what was looked at."""
    lines: list[str] = []
    by_code: dict[str, list[Finding]] = {}
    for severity in ("error", "warning"):
        for finding in report.findings:
            if finding.severity == severity:
                by_code.setdefault(finding.code, []).append(finding)
    for code, found in by_code.items():
        check, _ = explain(code)
        times = f", {len(found)} times" if len(found) > 1 else ""
        lines.append(f"{code} {found[0].severity} ({check.topic}){times}")
        for finding in found[:_MOST_SHOWN]:
            lines += _finding(finding)
        if len(found) > _MOST_SHOWN:
            lines.append(
                f"  … and {len(found) - _MOST_SHOWN} more: kit audit --json lists them all"
            )
        lines.append(f"  try: {found[0].remedy}")
        if check.kind == "integrity" and not found[0].where.file.startswith("/"):
            lines.append(f"  see: git log --stat -- {_line(shlex.quote(found[0].where.file))}")
        lines.append("")
    runs = f"{report.sealed} sealed {_plural('run', report.sealed)}"
    if report.known:
        runs += f" ({len(report.known)} known to be clean, bytes verified again)"
    if report.open:
        runs += f", {report.open} open"
    lines.append(f"{report.data}: {runs}")
    failed = {finding.code for finding in report.findings if finding.severity == "error"}
    broken = [
        c.topic for c in ALL if c.topic in report.checks and failed & {x.code for x in c.codes}
    ]
    good = [topic for topic in report.checks if topic not in broken]
    lines += _wrapped("hold", good) + _wrapped("FAIL", broken)
    verdict = f"{report.errors} {_plural('error', report.errors)}, "
    verdict += f"{report.warnings} {_plural('warning', report.warnings)}"
    lines.append(f"{'FAILED' if report.errors else 'ok'}: {verdict}")
    if by_code:
        lines.append(f"kit audit --explain {next(iter(by_code))} says what a code means")
    return "\n".join(lines) + "\n"


def _wrapped(word: str, topics: list[str]) -> list[str]:
    if not topics:
        return []
    text = f"  {word}: {', '.join(topics)}"
    return textwrap.wrap(text, 100, subsequent_indent=" " * 8, break_on_hyphens=False)


def as_object(report: Report) -> dict[str, Any]:
    """The report as plain values."""
    return {
        "data": report.data,
        "sealed": report.sealed,
        "open": report.open,
        "known": list(report.known),
        "checks": list(report.checks),
        "errors": report.errors,
        "warnings": report.warnings,
        "findings": [dataclasses.asdict(finding) for finding in report.findings],
    }


def explanation(check: Check, code: Code) -> str:
    """What a code means, for `kit audit --explain`."""
    return (
        f"{code.code} ({code.severity}, {check.topic}): {code.title}\n\n"
        f"{code.explanation}\n\ntry: {code.remedy}\n"
    )


def checks_document() -> str:
    """audit/CHECKS.md: every check and every code."""
    lines = [
        "# What the audit checks",
        "",
        "Made from the checks themselves by `python -m audit.report > audit/CHECKS.md`; a test",
        "holds the two together. A code keeps its meaning for ever. An error makes `kit audit` end",
        "with the exit code of its class, of several the first in this table; a warning does not.",
        "",
        "| class | exit code | what an error says |",
        "|---|---|---|",
        *(f"| {kind} | {code} | {meaning} |" for kind, (code, meaning) in KINDS.items()),
        "",
        "Checks of scope *bytes* read every byte at every audit. Those of scope *meaning* look at",
        "one sealed run; `kit audit --incremental` passes over them where the same auditor found",
        "nothing in the same run before (`audit/trust.py`). All others look at everything, always.",
    ]
    for check in ALL:
        lines += ["", f"## {check.topic}", "", check.claim, ""]
        lines += [f"Scope: {check.scope}; class: {check.kind}.", ""]
        lines += ["| code | severity | finding | why | remedy |", "|---|---|---|---|---|"]
        lines += [
            f"| {c.code} | {c.severity} | {c.title} | {c.explanation} | {c.remedy} |"
            for c in check.codes
        ]
    return "\n".join(lines) + "\n"


def _finding(finding: Finding) -> list[str]:
    lines = [f"  {_line(str(finding.where))}: {_line(finding.message)}"]
    if finding.got:
        lines.append(f"      got  {_line(finding.got)}")
    if finding.want:
        lines.append(f"      want {_line(finding.want)}")
    return lines


def _line(text: str) -> str:
    """Words of a record as one line for a terminal, which they cannot steer."""
    shown = printable(text)
    if len(shown) <= _MOST_CHARACTERS:
        return shown
    return f"{shown[:_MOST_CHARACTERS]}… ({len(shown)} characters)"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"


if __name__ == "__main__":
    print(checks_document(), end="")
