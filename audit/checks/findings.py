"""Findings keep their form, their evidence, their number and what they retract."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from analysis.claiming.documents import FINDINGS
from analysis.findings import FILE_NAME, SECTION, parse
from analysis.findings import Finding as PaperFinding
from audit.finding import Check, Code, Finding
from audit.paper import FindingFile, PaperView, paper
from audit.repository import RepositoryView
from records.errors import FormatError

_LEAST_BOILERPLATE = 40
_CITATION = re.compile(r"\\finding\{([^{}]*)\}")

FORM = Code(
    "FIND01",
    "error",
    "a finding without the form of one",
    "Front matter with id, title, status, retracts, retracted-by, provenance and evidence, in this "
    "order and with nothing else, then the finding. The title is one line without control or "
    "format characters.",
    "kit finding new writes the form",
)
NAME = Code(
    "FIND02",
    "error",
    "a finding's file does not carry its number",
    "paper/findings/F001.md holds the finding F001, and nothing else stands there.",
    "rename the file",
)
LIMITS = Code(
    "FIND03",
    "error",
    "a finding does not say what it does not establish",
    f'The section "{SECTION}" is part of every finding and says what a reader might take from it '
    "wrongly.",
    "write the section",
)
BOILERPLATE = Code(
    "FIND04",
    "error",
    "two findings limit themselves in the same words",
    f'A paragraph of "{SECTION}" that stands in another finding too says nothing of this one.',
    "say what this finding in particular does not establish",
)
EVIDENCE = Code(
    "FIND05",
    "error",
    "a finding's evidence is no sealed run here",
    "Evidence is named by the digest of seal.json, as RUNS lists it.",
    "restore the run, or correct the digest",
)
UNLINKED = Code(
    "FIND06",
    "error",
    "a retraction that is not linked both ways",
    "A retraction is a finding of its own: it lists what it retracts, and each of those has status "
    "retracted and lists it under retracted-by.",
    "kit finding retract links both",
)
TERMINAL = Code(
    "FIND07",
    "error",
    "a finding rests on terminal output",
    "What was read off a terminal cannot be checked. Such a finding may stand only as a disclosed "
    "defect: provenance terminal, a defect line that says so, no evidence, no claim cited in it, "
    "and cited by nothing.",
    "measure it again into records, or disclose the defect",
)
OTHER_EVIDENCE = Code(
    "FIND08",
    "error",
    "a finding cites a claim that rests on a run it does not name",
    "The evidence of a finding names every run behind the numbers in it.",
    "add the digest of the run's seal to the evidence",
)
NO_EVIDENCE = Code(
    "FIND09",
    "error",
    "a finding names no evidence",
    "A finding of provenance record rests on at least one sealed run.",
    "add the digest of the run's seal to the evidence",
)
REUSED = Code(
    "FIND10",
    "error",
    "a finding's number was another finding's before",
    "Number and title are one for ever; git knows the title that the number first had.",
    "restore the first finding and give this one the next number: kit finding new",
)
REMOVED = Code(
    "FIND11",
    "error",
    "a finding that git held is gone",
    "A finding is retracted, never removed: its number stays taken and its text stays readable.",
    "restore the file from git, then kit finding retract",
)
REVIVED = Code(
    "FIND12",
    "error",
    "a retraction was undone",
    "git holds this finding as retracted. What was retracted stays so; new evidence makes a new "
    "finding.",
    "restore the retraction, and write a new finding",
)
CITED = Code(
    "FIND13",
    "error",
    "the paper rests on a finding that there is not, or that was retracted",
    r"\finding{F001} in the paper names a finding here. A retracted one may be named only where "
    "its retraction is named too.",
    "correct the number, or name the retraction beside it",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Hold each finding against its form, the others, the records and its history."""
    view = paper(repository)
    for file in view.findings:
        yield from _form(file)
    sound = [(file, file.finding) for file in view.findings if file.finding is not None]
    by_id = {finding.id: finding for _, finding in sound}
    yield from _boilerplate(sound)
    for file, finding in sound:
        yield from _links(file, finding, by_id)
        yield from _evidence(repository, view, file, finding)
        yield from _terminal(view, file, finding)
    yield from _cited(view, by_id)
    yield from _history(repository, by_id)


def _form(file: FindingFile) -> Iterator[Finding]:
    name = PurePosixPath(file.document.name).name
    if file.finding is None:
        yield FORM.at(file.document.name, 1, f"{FORM.title}: {file.problem}")
    elif not file.finding.not_established:
        yield LIMITS.at(file.document.name, 0, "", "nothing", f"## {SECTION}")
    if not FILE_NAME.fullmatch(name) or (file.finding and f"{file.finding.id}.md" != name):
        got = file.finding.id if file.finding else "no finding"
        yield NAME.at(file.document.name, 0, "", got, "F<number>.md with that id")


def _boilerplate(sound: list[tuple[FindingFile, PaperFinding]]) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for file, finding in sound:
        for paragraph in finding.not_established.split("\n\n"):
            words = " ".join(paragraph.split()).casefold()
            if len(words) < _LEAST_BOILERPLATE and words != _whole(finding):
                continue
            other = first.setdefault(words, finding.id)
            if other != finding.id:
                got = f"{paragraph.strip()[:80]} (also in {other})"
                yield BOILERPLATE.at(file.document.name, 0, "", got, "words of its own")


def _whole(finding: PaperFinding) -> str:
    return " ".join(finding.not_established.split()).casefold()


def _links(
    file: FindingFile, finding: PaperFinding, by_id: dict[str, PaperFinding]
) -> Iterator[Finding]:
    name = file.document.name
    if (finding.status == "retracted") != bool(finding.retracted_by):
        got = f"status {finding.status}, retracted-by {list(finding.retracted_by)}"
        yield UNLINKED.at(name, 0, "", got, "retracted, and by whom; or neither")
    for other in finding.retracts:
        target = by_id.get(other)
        if target is None or finding.id not in target.retracted_by:
            yield UNLINKED.at(name, 0, "", f"{other} does not know it", f"retracted-by in {other}")
    for other in finding.retracted_by:
        source = by_id.get(other)
        if source is None or finding.id not in source.retracts:
            yield UNLINKED.at(name, 0, "", f"{other} does not retract it", f"retracts in {other}")


def _evidence(
    repository: RepositoryView, view: PaperView, file: FindingFile, finding: PaperFinding
) -> Iterator[Finding]:
    seals = {
        run.directory.seal_digest: run.name for run in repository.runs if run.directory.is_sealed
    }
    for digest in finding.evidence:
        if digest not in seals:
            yield EVIDENCE.at(file.document.name, 0, "", str(digest), "the seal of a run here")
    if finding.provenance == "record" and not finding.evidence:
        yield NO_EVIDENCE.at(file.document.name, 0, "", "none", "the seal of a run")
    named = {seals.get(digest, "") for digest in finding.evidence}
    for citation in view.citations:
        value = view.evaluation.values.get(citation.id)
        if citation.file != file.document.name or citation.scheme != "claim" or value is None:
            continue
        for run in sorted(set(value.runs) - named):
            message = f"{citation.id}: {OTHER_EVIDENCE.title}"
            yield OTHER_EVIDENCE.at(file.document.name, citation.line, message, run)


def _terminal(view: PaperView, file: FindingFile, finding: PaperFinding) -> Iterator[Finding]:
    name = file.document.name
    if finding.provenance == "record":
        if finding.defect:
            yield TERMINAL.at(name, 0, "", "defect, provenance record", "provenance terminal")
        return
    if not finding.defect or finding.evidence:
        got = "no defect disclosed" if not finding.defect else "evidence"
        yield TERMINAL.at(name, 0, "", got, "a defect line, and no evidence")
    for citation in view.citations:
        if citation.file == name and citation.scheme == "claim":
            yield TERMINAL.at(name, citation.line, "", f"cites {citation.id}", "no claim")
    for document in view.documents:
        for number, line in enumerate(document.lines, 1):
            if document.kind == "tex" and f"\\finding{{{finding.id}}}" in line:
                yield TERMINAL.at(document.name, number, "", finding.id, "cited by nothing")


def _cited(view: PaperView, by_id: dict[str, PaperFinding]) -> Iterator[Finding]:
    for document in view.documents:
        if document.kind != "tex":
            continue
        at = [
            (number, match[1])
            for number, line in enumerate(document.lines, 1)
            for match in _CITATION.finditer(line)
        ]
        named = {id_ for _, id_ in at}
        for number, id_ in at:
            finding = by_id.get(id_)
            if finding is None:
                yield CITED.at(document.name, number, "", id_, "a finding in paper/findings")
            elif finding.retracted_by and not named & set(finding.retracted_by):
                want = f"{', '.join(finding.retracted_by)} beside it"
                yield CITED.at(document.name, number, "", f"{id_}, retracted", want)


def _history(repository: RepositoryView, by_id: dict[str, PaperFinding]) -> Iterator[Finding]:
    git = repository.git(repository.root)
    if git is None:
        return  # the check of the history says that it is not known
    folder = repository.root / FINDINGS
    past: dict[str, list[PaperFinding]] = {}
    for change in git.changes(folder):
        name = PurePosixPath(change.path).name
        if not FILE_NAME.fullmatch(name):
            continue
        versions = past.setdefault(name[:-3], [])
        if change.status == "D":
            continue
        try:
            versions.append(parse(git.blob(change.new_blob).decode("utf-8", "replace")))
        except FormatError:
            continue  # it had no form then; what it has now is judged above
    for id_, versions in sorted(past.items()):
        shown = (FINDINGS / f"{id_}.md").as_posix()
        now = by_id.get(id_)
        if not (folder / f"{id_}.md").is_file():
            yield REMOVED.at(shown, 0)
        elif now is not None and versions:
            first = versions[-1]  # git tells the newest first
            if (first.id, first.title) != (now.id, now.title):
                yield REUSED.at(shown, 0, "", now.title, first.title)
            if now.status == "active" and any(v.status == "retracted" for v in versions):
                yield REVIVED.at(shown, 0, "", "status: active", "status: retracted")


CHECK = Check(
    "findings",
    "Findings keep their form, their evidence, their number and what they retract.",
    (
        FORM,
        NAME,
        LIMITS,
        BOILERPLATE,
        EVIDENCE,
        UNLINKED,
        TERMINAL,
        OTHER_EVIDENCE,
        NO_EVIDENCE,
        REUSED,
        REMOVED,
        REVIVED,
        CITED,
    ),
    check,
)
