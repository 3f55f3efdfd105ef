"""Every number that paper, findings and README cite is what the records give, as printed."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.claiming.documents import Citation
from analysis.claiming.evidence import EVIDENCE
from analysis.claiming.tex import CLAIMS_TEX, claims_tex
from analysis.published import PUBLISHED
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
    "paper/generated/claims.tex is not what the records give",
    r"The file holds what \claim prints. It is generated, ignored by git, and must be fresh where "
    "it exists, since a paper built from it would print other numbers.",
    "make paper-claims",
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
    path = repository.root / CLAIMS_TEX
    if not path.is_file():
        return
    got = path.read_bytes().split(b"\n")
    want = claims_tex(view.evaluation.values, view.published).split(b"\n")
    for number in range(max(len(got), len(want))):
        have = got[number : number + 1] or [b"<end of file>"]
        need = want[number : number + 1] or [b"<end of file>"]
        if have != need:
            shown = (have[0].decode("utf-8", "replace"), need[0].decode("utf-8"))
            yield STALE.at(repository.show(path), number + 1, "", *shown)
            return


CHECK = Check(
    "claims",
    "Every number that paper, findings and README cite is what the records give, as printed.",
    (UNKNOWN, DIFFERS, NO_VALUE, UNUSED, EVIDENCE_BAD, STALE),
    check,
)
