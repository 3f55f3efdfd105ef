"""Run the checks and sum up; a crash inside a check is a bug and passes through.

Invariant: the order of findings is that of the checks and of the runs, the same at every audit,
whether runs were looked at one after the other, side by side, or in part known from before.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from audit.catalogue import ALL
from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView
from audit.trust import Context
from records.errors import FormatError

# Below this the start of a second interpreter costs more than it saves.
_WORTH_SHARING_BYTES = 64 << 20
# So many for each process even out what runs of different size take.
_CHUNKS = 8


@dataclass(frozen=True, slots=True)
class Report:
    """What an audit found. `sealed`, `open`: runs that were looked at.

    `known`: runs whose bytes were verified and whose meaning was known to be clean from before;
    `clean`: the keys of the runs in which nothing was found, for the next incremental audit.
    """

    data: str
    sealed: int
    open: int
    checks: tuple[str, ...]
    findings: tuple[Finding, ...]
    known: tuple[str, ...] = ()
    clean: tuple[str, ...] = ()

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        """How many findings are warnings."""
        return sum(finding.severity == "warning" for finding in self.findings)


@dataclass(frozen=True, slots=True)
class _RunResult:
    """One run: findings by topic, its key if nothing was found, whether meaning was known."""

    findings: dict[str, tuple[Finding, ...]]
    key: str
    known: bool


def audit(
    root: Path,
    data: Path,
    checks: Sequence[Check] = ALL,
    trusted: Set[str] = frozenset(),
    processes: int = 1,
) -> Report:
    """Audit the records at `data` of the project at `root`.

    `trusted`: keys of runs that an earlier audit of all checks found clean (`Report.clean`).
    `processes`: how many runs may be looked at side by side, where they are large.
    """
    view = RepositoryView(root.absolute(), data.absolute())
    whole = tuple(checks) == ALL
    context = Context.of(view.root) if whole else None
    names = [run.name for run in view.runs]
    if processes > 1 and len(names) > 1 and whole and _bytes(view) > _WORTH_SHARING_BYTES:
        # spawn: a fork would copy whatever threads and locks the caller has.
        with ProcessPoolExecutor(min(processes, len(names)), get_context("spawn")) as pool:
            work = partial(_audit_apart, view.root, view.data, context, frozenset(trusted))
            # A chunk carries `work`, with all that is trusted, once.
            chunk = max(1, len(names) // (_CHUNKS * processes))
            results = dict(zip(names, pool.map(work, names, chunksize=chunk), strict=True))
    else:
        results = {one.only: _audit_run(one, checks, context, trusted) for one in view.each()}
    findings: list[Finding] = []
    for check in checks:
        if check.scope == "project":
            findings.extend(check.run(view))
        else:
            findings.extend(f for name in names for f in results[name].findings[check.topic])
    sealed = sum(run.is_sealed for run in view.runs)
    return Report(
        view.show(view.data),
        sealed,
        len(names) - sealed,
        tuple(check.topic for check in checks),
        tuple(findings),
        tuple(name for name in names if results[name].known),
        tuple(results[name].key for name in names if results[name].key),
    )


def _audit_apart(
    root: Path, data: Path, context: Context | None, trusted: Set[str], name: str
) -> _RunResult:
    """As `_audit_run`, in a process of its own."""
    return _audit_run(RepositoryView(root, data, name), ALL, context, trusted)


def _audit_run(
    view: RepositoryView, checks: Sequence[Check], context: Context | None, trusted: Set[str]
) -> _RunResult:
    """All checks of one run: bytes always, meaning unless it is known."""
    found: dict[str, tuple[Finding, ...]] = {}
    for check in checks:
        if check.scope == "bytes":
            found[check.topic] = tuple(check.run(view))
    (run,) = view.runs
    intact = run.seal is not None and not any(found.values())
    key = context.key(run) if intact and context else ""
    known = key != "" and key in trusted
    for check in checks:
        if check.scope == "meaning":
            found[check.topic] = () if known else tuple(check.run(view))
    return _RunResult(found, "" if any(found.values()) else key, known)


def _bytes(view: RepositoryView) -> int:
    """The size of all journals, which is nearly all that there is to read."""
    journals = (run.directory.events for run in view.runs)
    return sum(path.stat().st_size for path in journals if path.is_file())


def explain(code: str) -> tuple[Check, Code]:
    """The check and the meaning of a code. FormatError names the nearest."""
    for check in ALL:
        for one in check.codes:
            if one.code == code.upper():
                return check, one
    known = [one.code for check in ALL for one in check.codes]
    near = difflib.get_close_matches(code.upper(), known, n=1, cutoff=0.5)
    remedy = f"kit audit --explain {near[0]}" if near else "audit/CHECKS.md lists them"
    raise FormatError(f"no finding has the code {code!r}", remedy)
