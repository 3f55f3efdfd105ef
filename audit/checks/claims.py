"""Every number that paper, findings and README cite is what the records give, as printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from analysis.claiming.documents import Citation
from analysis.claiming.evidence import EVIDENCE
from analysis.claiming.tex import CLAIMS_TEX, claims_tex
from analysis.published import PUBLISHED
from analysis.typeset.generated import TEXTS, record_texts
from audit.difference import first_difference
from audit.finding import Check, Code, Finding
from audit.paper import PaperView, paper
from audit.repository import RepositoryView

UNKNOWN = Code(
    "CLAIM01",
    "error",
    "a citation of a claim that there is not",
    r"Findings and README write [value](claim:id), the paper \claim{id}; published figures stand "
    "under published: in the same way. An id that nothing defines traces to no record.",
    "kit claims lists the ids; correct the citation",
)
DIFFERS = Code(
    "CLAIM02",
    "error",
    "a printed value is not what the records give",
    "The value is computed again from the sealed runs that paper/evidence.toml names, and compared "
    "as text: to the last digit printed, unit included.",
    "write the value that kit claims prints, or retract what was claimed",
)
NO_VALUE = Code(
    "CLAIM03",
    "error",
    "a claim is cited that the records do not give",
    "The claim is defined, but its runs are missing, do not hold, or lack the windows it needs.",
    "see what the other checks say of the runs, or take the citation out",
)
UNUSED = Code(
    "CLAIM04",
    "warning",
    "a claim has evidence and is cited nowhere",
    "The claims named in analysis/claims.py are those the project speaks of. A result that is left "
    "out of the paper should be left out knowingly.",
    "cite it in a finding or in the paper, or take it out of NAMED",
)
EVIDENCE_BAD = Code(
    "CLAIM05",
    "error",
    "the files that claims rest on cannot be used",
    "paper/evidence.toml names the runs of each study with the digests of their seals, "
    "paper/published.toml the published figures. A run that is missing, unsealed, of another plan, "
    "or under another seal is no evidence.",
    "restore the file or the run from git",
)
STALE = Code(
    "CLAIM06",
    "error",
    "a text in paper/generated is not what the records give",
    r"claims.tex holds what \claim prints, the texts beside it provenance, runs, findings and "
    "verdicts. They are generated, ignored by git, and must be fresh where they exist, since a "
    "paper built from them would print other numbers.",
    "make paper, or without TeX: make paper-claims, and remove the others",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Compare each citation with the value computed again."""
    view = paper(repository)
    if view.published_problem:
        yield EVIDENCE_BAD.at(PUBLISHED.as_posix(), 0, view.published_problem)
    for problem in view.evaluation.study_problems.values():
        yield EVIDENCE_BAD.at(EVIDENCE.as_posix(), 0, problem)
    for citation in view.citations:
        yield from _citation(view, citation)
    cited = view.cited()
    for id_, value in sorted(view.evaluation.values.items()):
        if id_ in view.evaluation.named and id_ not in cited:
            yield UNUSED.at(EVIDENCE.as_posix(), 0, f"{id_}: {UNUSED.title}", value.printed)
    yield from _generated(repository, view)


def _citation(view: PaperView, citation: Citation) -> Iterator[Finding]:
    shown, wanted = citation.shown, ""
    if citation.scheme == "published":
        figure = view.published.get(citation.id)
        if figure is None:
            got = f"published:{citation.id}"
            yield UNKNOWN.at(citation.file, citation.line, "", got, "an id of published.toml")
            return
        wanted = figure.printed
    elif citation.id in view.evaluation.values:
        wanted = view.evaluation.values[citation.id].printed
    elif citation.id and view.evaluation.knows(citation.id):
        why = view.evaluation.why_not(citation.id)
        yield NO_VALUE.at(citation.file, citation.line, f"{NO_VALUE.title}: {why}")
        return
    else:
        got = citation.id or f"no id: {citation.shown[:80]}"
        yield UNKNOWN.at(citation.file, citation.line, "", got, "an id that kit claims lists")
        return
    if (shown and shown != wanted) or (citation.file.endswith(".md") and not shown):
        message = f"{citation.id}: {DIFFERS.title}"
        yield DIFFERS.at(citation.file, citation.line, message, shown or "nothing", wanted)


def _generated(repository: RepositoryView, view: PaperView) -> Iterator[Finding]:
    for name, want in _texts(repository, view).items():
        path = repository.root / name
        if path.is_file():
            line, got, wanted = first_difference(path.read_bytes(), want)
            if line:
                yield STALE.at(repository.show(path), line, "", got, wanted)


def _texts(repository: RepositoryView, view: PaperView) -> dict[Path, bytes]:
    """What the texts must be, as far as evidence and findings can be read and any is there."""
    claims = {CLAIMS_TEX: claims_tex(view.evaluation.values, view.published)}
    findings = [one.finding for one in view.findings if one.finding]
    whole = not view.evaluation.study_problems and len(findings) == len(view.findings)
    if not whole or not any((repository.root / name).is_file() for name in TEXTS):
        return claims
    made, _ = record_texts(
        repository.root, repository.data, view.evaluation, view.published, findings
    )
    return made


CHECK = Check(
    "claims",
    "Every number that paper, findings and README cite is what the records give, as printed.",
    (UNKNOWN, DIFFERS, NO_VALUE, UNUSED, EVIDENCE_BAD, STALE),
    check,
)
