"""An audit's report for people and for machines, and CHECKS.md.

Invariant: every finding is shown with its file, its line, what is there and what should be.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from audit.catalogue import ALL
from audit.finding import Check, Code, Finding
from audit.runner import Report


def as_text(report: Report) -> str:
    """Findings grouped by code, then a line that sums up."""
    lines: list[str] = []
    by_code: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_code.setdefault(finding.code, []).append(finding)
    for code, found in by_code.items():
        lines.append(f"{code} {found[0].severity}")
        for finding in found:
            lines += _finding(finding)
        lines += [f"  try: {found[0].remedy}", ""]
    runs = f"{report.sealed} sealed {_plural('run', report.sealed)}"
    if report.open:
        runs += f", {report.open} open"
    lines.append(f"{report.data}: {runs}; checks: {', '.join(report.checks)}")
    verdict = f"{report.errors} {_plural('error', report.errors)}, "
    verdict += f"{report.warnings} {_plural('warning', report.warnings)}"
    lines.append(f"{'FAILED' if report.errors else 'ok'}: {verdict}")
    if report.findings:
        lines.append(f"kit audit --explain {report.findings[0].code} says what a code means")
    return "\n".join(lines) + "\n"


def as_object(report: Report) -> dict[str, Any]:
    """The report as plain values."""
    return {
        "data": report.data,
        "sealed": report.sealed,
        "open": report.open,
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
        "holds the two together. An error makes `kit audit` end with exit code 50, a warning does",
        "not. A code keeps its meaning for ever.",
    ]
    for check in ALL:
        lines += ["", f"## {check.topic}", "", check.claim, ""]
        lines += ["| code | severity | finding | why | remedy |", "|---|---|---|---|---|"]
        lines += [
            f"| {c.code} | {c.severity} | {c.title} | {c.explanation} | {c.remedy} |"
            for c in check.codes
        ]
    return "\n".join(lines) + "\n"


def _finding(finding: Finding) -> list[str]:
    lines = [f"  {finding.where}: {finding.message}"]
    if finding.got:
        lines.append(f"      got  {finding.got}")
    if finding.want:
        lines.append(f"      want {finding.want}")
    return lines


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"


if __name__ == "__main__":
    print(checks_document(), end="")
