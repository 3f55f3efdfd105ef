"""What an audit finds of one run, as the outcome of tests; no verb of its own.

Invariant: a check is in exactly one of the three lists.
"""

from __future__ import annotations

from pathlib import Path

from analysis.exporting.in_toto import Outcome
from audit.catalogue import ALL
from audit.finding import Check, Finding
from audit.runner import audit
from audit.trust import Context
from records.run_directory import RunDirectory


def outcome_of(root: Path, directory: RunDirectory) -> Outcome:
    """Audit the records around a run: what is found of it, and of what all runs share."""
    report = audit(root, directory.path.absolute().parent)
    lists: dict[str, list[str]] = {"none": [], "warning": [], "error": []}
    for check in ALL:
        found = {f.severity for f in report.findings if _concerns(f, check, directory.path.name)}
        worst = "error" if "error" in found else "warning" if found else "none"
        lists[worst].append(check.topic)
    return Outcome(lists["none"], lists["warning"], lists["error"], Context.of(root).digest)


def _concerns(finding: Finding, check: Check, run_id: str) -> bool:
    if finding.code not in {code.code for code in check.codes}:
        return False
    return check.scope == "project" or run_id in finding.where.file.split("/")
