"""What an audit finds: a coded statement about one place, with what is there and what should be.

Invariant: a code means one thing for ever; its explanation stands beside it and CHECKS.md is made
from both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from audit.repository import RepositoryView

Severity = Literal["error", "warning"]

# What a check looks at. "project": everything at once. "bytes": one run's files against seal and
# chain, which every audit does again. "meaning": what one sealed run says; the answer follows from
# the bytes that its seal vouches for, the auditor and images/, so an incremental audit may keep it.
Scope = Literal["project", "bytes", "meaning"]

# What an error of a check says: the records are not what they were; a run was not carried out as
# planned; what was derived from records is not theirs; something is in the files that must not be.
Kind = Literal["integrity", "conduct", "derived", "hygiene"]


@dataclass(frozen=True, slots=True)
class Where:
    """A file, by path as shown to the user, and a line counted from 1 (0: the whole file)."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement. `got` and `want` may be empty where the message says it all."""

    code: str
    severity: Severity
    where: Where
    message: str
    got: str = ""
    want: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for: what was found, why it matters, and what to do about it."""

    code: str
    severity: Severity
    title: str
    explanation: str
    remedy: str

    def at(
        self, file: str, line: int = 0, message: str = "", got: str = "", want: str = ""
    ) -> Finding:
        """A finding of this code."""
        return Finding(
            self.code,
            self.severity,
            Where(file, line),
            message or self.title,
            got,
            want,
            self.remedy,
        )


@dataclass(frozen=True, slots=True)
class Check:
    """One topic: a pure function over the repository, and the codes that it may give.

    A check of scope "bytes" or "meaning" is called once a run, with a view of that run alone.
    """

    topic: str
    claim: str
    codes: tuple[Code, ...]
    run: Callable[[RepositoryView], Iterator[Finding]]
    scope: Scope = "project"
    kind: Kind = "derived"
