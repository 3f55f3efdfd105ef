"""The appendix that every number of the paper leads to: one entry a claim, figure and finding.

Invariant: whatever the paper's sources cite has an entry, and an entry names the records, by run,
seal and journal line, and the command that walks down to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from analysis.claiming.claim import Value, described
from analysis.claiming.documents import citations, documents
from analysis.claiming.evaluation import Evaluation
from analysis.claiming.reading import Line
from analysis.findings import Finding
from analysis.published import Published
from analysis.typeset.words import code, command, escaped, joined, sentence
from records.digest import Digest
from records.schema import RunClosed

_SEAL_SHOWN = 16  # hex digits; the run's own entry has them all


@dataclass(frozen=True, slots=True)
class RunName:
    """What the paper calls a run, and the digest of its seal. `closed`: its host went for good."""

    short: str
    seal: Digest
    closed: bool = False


def cited_claims(root: Path) -> frozenset[str]:
    """The ids of claims that the paper's sources cite."""
    return frozenset(
        citation.id
        for document in documents(root)
        if document.kind == "tex"
        for citation in citations(document)
        if citation.scheme == "claim"
    )


def provenance_tex(
    cited: Collection[str],
    evaluation: Evaluation,
    published: Mapping[str, Published],
    run_names: Mapping[str, RunName],
) -> bytes:
    """Entries of the claims `cited` and of every published figure, in order of id.

    `run_names`: run id -> the short name under which the paper's list of runs has it. An id without
    a value gets no entry: LaTeX stops at its citation, which says why.
    """
    claims = [evaluation.values[id_] for id_ in sorted(cited) if id_ in evaluation.values]
    return joined(
        [
            r"\kitsection{Numbers of this study}",
            *[_claim(value, run_names) for value in claims],
            r"\kitsection{Numbers of the original}",
            *[_figure(one) for _, one in sorted(published.items())],
        ]
    )


def findings_tex(findings: Iterable[Finding]) -> bytes:
    """The findings by number: title, status, and what retracted them."""
    lines = []
    for one in findings:
        by = f" by {', '.join(one.retracted_by)}" if one.retracted_by else ""
        status = f"{one.status}{by}; {code(f'paper/findings/{one.id}.md')}"
        lines.append(
            command("kitentry", f"finding:{one.id}", escaped(one.id), escaped(one.title), status)
        )
    return joined(lines)


def _claim(value: Value, run_names: Mapping[str, RunName]) -> str:
    id_ = value.claim.id
    boots = sorted({use.boot for use in value.measured})
    parts = [
        sentence(value.claim.text),
        f"Function: {code(described(value.claim.function))}.",
        *([f"Boots: {escaped(', '.join(boots))}."] if boots else []),
        f"Records: {records_text(value.lines, run_names)}.",
        f"Trace: {code(f'kit trace {id_}')}",
    ]
    return command(
        "kitentry", f"claim:{id_}", escaped(id_), escaped(value.printed), " ".join(parts)
    )


def _figure(one: Published) -> str:
    parts = [sentence(one.text), sentence(f"Source: {one.source}")]
    if one.boots:
        parts.append(f"Boots there: {one.boots}.")
    if one.margin is not None:
        parts.append(
            f"Margin of a reproduction: {escaped(str(one.margin.relative))} of the figure, fixed "
            f"{escaped(one.margin.fixed)}."
        )
    parts.append(f"Kept in {code('paper/published.toml')}")
    return command(
        "kitentry", f"published:{one.id}", escaped(one.id), escaped(one.printed), " ".join(parts)
    )


def records_text(lines: Sequence[Line], run_names: Mapping[str, RunName]) -> str:
    """Runs with the journal lines that were read of each, neighbours as ranges."""
    parts = []
    for run, group in groupby(sorted(lines), key=lambda line: line.run):
        numbers = [line.number for line in group]
        shown = f"{'lines' if len(numbers) > 1 else 'line'} {', '.join(_ranges(numbers))}"
        known = run_names.get(run)
        if known is None:  # a verdict may rest on a run that no claim does
            parts.append(f"{code(run)} {shown}")
        else:
            seal = code(known.seal.hex[:_SEAL_SHOWN])
            closed = f", {escaped(RunClosed.WORD)}" if known.closed else ""
            parts.append(
                f"{command('kitrun', run, known.short)} (seal {seal}\\dots{closed}) {shown}"
            )
    return "; ".join(parts) or "none"


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    start = previous = numbers[0]
    for number in [*numbers[1:], -1]:
        if number != previous + 1:
            yield str(start) if start == previous else rf"{start}\textendash{{}}{previous}"
            start = number
        previous = number
