"""From a claim down to the journal lines and digests it rests on, and from a record up to claims.

Invariant: every place is given as file:line, line counted from 1, so that it can be opened; nothing
is shown that the evaluation did not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from analysis.claiming.by_boot import BootValue, summary, values_by_boot
from analysis.claiming.claim import Value, described, where_defined
from analysis.claiming.documents import FINDINGS, Citation, citations, documents
from analysis.claiming.evaluation import Evaluation
from analysis.claiming.reading import Line, StudyRun
from analysis.findings import parse
from records.digest import Digest
from records.errors import FormatError, UnknownRunError
from records.limits import printable
from records.run_directory import RunDirectory

# Claim id -> the places that cite it, as `file:line`.
CitedPlaces = Mapping[str, tuple[str, ...]]

UNBOUND = "unbound"
_LINE = re.compile(r"(.+?)(?:/events\.jsonl)?(?::([0-9]{1,18}))?")


@dataclass(frozen=True, slots=True)
class RunTrace:
    """What stands beneath the windows of one run: digests, binding, driver.

    `bound`: what else the binding names by one word (image, manifest, interpreter). `models`: the
    digest over the lines `<file> <digest>` of each model, in order of file. `closed`: that its host
    was gone and why, in words; "" for a run that ended itself.
    """

    run: str
    seal: str
    plan: str
    harness: str
    runtime: str
    engine: str
    engine_after: str
    lock: str
    lock_digest: str
    bound: dict[str, str]
    models: dict[str, str]
    host: str
    driver: str
    calibrated_p99_ns: dict[int, int]
    closed: str = ""


@dataclass(frozen=True, slots=True)
class WindowTrace:
    """One measured window and the lines of the journal that hold it and its boot."""

    run: str
    arm: str
    boot: str
    window: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """One claim, from where it is printed to where it was recorded.

    `by_boot`: what `boots` tell of each boot, in words; "" where the claim is of no single boot.
    `spread`: the boots of each arm in a line. `blocks`: within which blocks arms are held against
    each other, where any was measured in others, too.
    """

    claim: str
    printed: str
    text: str
    study: str
    function: str
    defined: str
    cited: tuple[str, ...]
    runs: tuple[RunTrace, ...]
    windows: tuple[WindowTrace, ...]
    other_lines: tuple[str, ...]
    by_boot: str
    boots: tuple[BootValue, ...]
    spread: tuple[str, ...]
    blocks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReverseTrace:
    """What rests on one record. `claims`: id -> places that cite it, "()" for none."""

    run: str
    seal: str
    line: int
    claims: dict[str, tuple[str, ...]]
    findings: tuple[str, ...]
    closed: str = ""


def trace(
    claim_id: str, evaluation: Evaluation, root: Path, data: Path, cited: CitedPlaces
) -> Trace:
    """Trace one claim. ClaimError: there is no such claim, or it has no value."""
    value = evaluation.value(claim_id)
    claim = value.claim
    windows, used = [], set[Line]()
    for use in value.measured:
        index = evaluation.runs[use.run].lines
        seqs = {*index.windows[use.boot, use.window]}
        seqs |= {*index.boot(use.boot, "boot.started", "engine.decided", "boot.ended")}
        lines = [line for line in value.lines if line.run == use.run and line.seq in seqs]
        used.update(lines)
        at = places(lines, root, data)
        windows.append(WindowTrace(use.run, use.arm, use.boot, use.window, at))
    by_boot, boots = values_by_boot(value, evaluation.runs)
    return Trace(
        claim_id,
        value.printed,
        claim.text,
        claim.study,
        described(claim.function),
        where_defined(claim.function, root),
        cited.get(claim_id, ()),
        tuple(run_trace(evaluation.runs[run], data) for run in value.runs),
        tuple(windows),
        places([line for line in value.lines if line not in used], root, data),
        by_boot,
        boots,
        summary(boots),
        value.blocks_told,
    )


def reverse(record: str, evaluation: Evaluation, root: Path, data: Path) -> ReverseTrace:
    """What rests on a run (by id, its beginning, path or seal digest) or on a line (`RUN:LINE`).

    UnknownRunError: no sealed run here is called that, or several are, or it has no such line.
    """
    name, line = _record(record, data)
    directory = RunDirectory(data / name)
    seal = directory.seal_digest
    cited = cited_places(root)
    claims = {
        id_: cited.get(id_, ())
        for id_, value in sorted(evaluation.values.items())
        if _rests(value, name, line)
    }
    event = directory.closed
    closed = f"{event.WORD} ({printable(event.reason)})" if event else ""
    found = _findings(root, seal) if not line else ()
    return ReverseTrace(name, str(seal), line, claims, found, closed)


def _rests(value: Value, run: str, line: int) -> bool:
    if not line:
        return run in value.runs
    return any(one.run == run and one.number == line for one in value.lines)


def _record(record: str, data: Path) -> tuple[str, int]:
    sealed = {
        path.name: RunDirectory(path).seal_digest
        for path in sorted(data.iterdir() if data.is_dir() else ())
        if RunDirectory(path).is_sealed
    }
    for name, digest in sealed.items():
        if record in (str(digest), digest.hex):
            return name, 0
    match = _LINE.fullmatch(record)
    name = match[1].rpartition("/")[2] if match else ""
    begun = [one for one in sealed if name and one.lower().startswith(name.lower())]
    if match and (name in sealed or len(begun) == 1):
        run = name if name in sealed else begun[0]
        last = RunDirectory(data / run).seal().events.lines
        if match[2] and not 1 <= int(match[2]) <= last:
            raise UnknownRunError(f"run {run} has no line {int(match[2])}: 1 to {last}")
        return run, int(match[2] or 0)
    known = ", ".join(sealed) or "none"
    raise UnknownRunError(f"no sealed run {record!r}", remedy=f"sealed runs: {known}")


def _findings(root: Path, seal: Digest) -> tuple[str, ...]:
    found = []
    for path in sorted((root / FINDINGS).glob("*.md")):
        try:
            finding = parse(path.read_text(encoding="utf-8"))
        except FormatError:
            continue  # the audit says that it has no form
        if seal in finding.evidence:
            found.append(f"{finding.id} ({finding.status}): {finding.title}")
    return tuple(found)


def cited_places(root: Path) -> CitedPlaces:
    """Where paper, findings and README cite each claim: for any number of traces, read once."""
    found: dict[str, list[Citation]] = {}
    for document in documents(root):
        for citation in citations(document):
            if citation.scheme == "claim":
                found.setdefault(citation.id, []).append(citation)
    return {id_: tuple(f"{c.file}:{c.line}" for c in at) for id_, at in found.items()}


def run_trace(run: StudyRun, data: Path) -> RunTrace:
    """What stands beneath the windows of one run."""
    before = next((e for e in run.engines if e.phase == "before"), None)
    after = next((e for e in reversed(run.engines) if e.phase == "after"), None)
    first = run.hosts[0] if run.hosts else None
    models = {
        model.model: str(
            Digest.of("".join(f"{name} {d}\n" for name, d in sorted(model.files.items())).encode())
        )
        for model in run.models
    }
    return RunTrace(
        run.run_id,
        str(RunDirectory(data / run.run_id).seal_digest),
        str(run.started.plan_digest),
        str(run.started.harness_digest),
        before.runtime if before else UNBOUND,
        str(before.digest) if before else UNBOUND,
        str(after.digest) if after else UNBOUND,
        before.lock if before else UNBOUND,
        str(before.lock_digest) if before else UNBOUND,
        {k: v for k, v in sorted((before.facts if before else {}).items()) if isinstance(v, str)},
        models,
        run.host_id,
        str(first.facts.get("driver", "absent")) if first else "unknown",
        {c.concurrency: c.error_p99_ns for c in run.calibrations},
        f"{run.closed.WORD} ({printable(run.closed.reason)})" if run.closed else "",
    )


def places(lines: Sequence[Line], root: Path, data: Path) -> tuple[str, ...]:
    """file:line for each run of neighbouring lines, `file:5-8` where there are several.

    Files are named from `root`, or in full where the records at `data` lie elsewhere.
    """
    found = []
    for run, group in groupby(sorted(lines), key=lambda line: line.run):
        path = data / run / "events.jsonl"
        shown = path.relative_to(root) if path.is_relative_to(root) else path
        numbers = [line.number for line in group]
        start = numbers[0]
        for here, following in zip(numbers, [*numbers[1:], -1], strict=True):
            if following != here + 1:
                found.append(f"{shown}:{start}" if start == here else f"{shown}:{start}-{here}")
                start = following
    return tuple(found)
