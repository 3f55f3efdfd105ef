"""Run the checks and sum up; a crash inside a check is a bug and passes through.

Invariant: the order of findings is that of the checks and of the files, the same at every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from audit.catalogue import ALL
from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView
from records.errors import FormatError


@dataclass(frozen=True, slots=True)
class Report:
    """What an audit found. `runs`: sealed and open ones that were looked at."""

    data: str
    sealed: int
    open: int
    checks: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        """How many findings are warnings."""
        return sum(finding.severity == "warning" for finding in self.findings)


def audit(root: Path, data: Path, checks: Sequence[Check] = ALL) -> Report:
    """Audit the records at `data` of the project at `root`."""
    repository = RepositoryView(root.absolute(), data.absolute())
    findings = [finding for check in checks for finding in check.run(repository)]
    sealed = sum(run.is_sealed for run in repository.runs)
    return Report(
        repository.show(repository.data),
        sealed,
        len(repository.runs) - sealed,
        tuple(check.topic for check in checks),
        tuple(findings),
    )


def explain(code: str) -> tuple[Check, Code]:
    """The check and the meaning of a code. FormatError lists the codes."""
    for check in ALL:
        for one in check.codes:
            if one.code == code.upper():
                return check, one
    known = ", ".join(one.code for check in ALL for one in check.codes)
    raise FormatError(f"no finding has the code {code!r}", remedy=f"known codes: {known}")
