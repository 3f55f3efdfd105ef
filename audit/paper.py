"""What the project says and what its records give, side by side, read once an audit.

Invariant: reading only; what cannot be read is a problem in the view, never an exception.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.claiming.claim import Value
from analysis.claiming.documents import Citation, Document, citations, documents
from analysis.claiming.evaluation import Evaluation, evaluate_project
from analysis.findings import Finding as PaperFinding
from analysis.findings import parse
from analysis.published import Published, load_published
from audit.repository import RepositoryView
from records.errors import ClaimError, FormatError


@dataclass(frozen=True, slots=True)
class FindingFile:
    """One file below paper/findings: its finding, or why it has none."""

    document: Document
    finding: PaperFinding | None
    problem: str


@dataclass(frozen=True, slots=True)
class PaperView:
    """Documents with their citations; claims evaluated; findings; published figures."""

    documents: tuple[Document, ...]
    citations: tuple[Citation, ...]
    evaluation: Evaluation
    published: dict[str, Published]
    published_problem: str
    findings: tuple[FindingFile, ...]

    def cited(self) -> dict[str, list[Citation]]:
        """The claims cited that have a value: id -> where."""
        found: dict[str, list[Citation]] = {}
        for citation in self.citations:
            if citation.scheme == "claim" and citation.id in self.evaluation.values:
                found.setdefault(citation.id, []).append(citation)
        return found

    def cited_values(self) -> list[tuple[Value, Citation]]:
        """Each cited claim's value and the first place that cites it, in order of id."""
        return [(self.evaluation.values[id_], at[0]) for id_, at in sorted(self.cited().items())]


def paper(repository: RepositoryView) -> PaperView:
    """The view of this repository's paper, made once."""
    return repository.once("paper", lambda: _read(repository))


def _read(repository: RepositoryView) -> PaperView:
    found = tuple(documents(repository.root))
    published: dict[str, Published] = {}
    problem = ""
    try:
        published = load_published(repository.root)
    except ClaimError as error:
        problem = error.message
    return PaperView(
        found,
        tuple(citation for document in found for citation in citations(document)),
        evaluate_project(repository.root, repository.data),
        published,
        problem,
        tuple(_finding(d) for d in found if d.name.startswith("paper/findings/")),
    )


def _finding(document: Document) -> FindingFile:
    try:
        return FindingFile(document, parse(document.text), "")
    except FormatError as error:
        return FindingFile(document, None, error.message)
