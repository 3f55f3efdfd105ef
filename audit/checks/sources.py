"""The paper is made of texts that the other checks read, and of nothing beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from analysis.claiming.documents import GENERATED
from analysis.claiming.evidence import EVIDENCE, load_evidence
from analysis.typeset.generated import made_names, strays
from audit.checks.tables import TABLES
from audit.concealment import concealed, unseen
from audit.finding import Check, Code, Finding
from audit.paper import paper
from audit.repository import RepositoryView
from records.errors import ClaimError
from records.run_directory import is_regular

PAPER = Path("paper")

CONCEALED = Code(
    "TEXT01",
    "error",
    "a text that prints something else than its source shows",
    "Numbers are looked for in the source of a text. Definitions, counters, code points, verbatim "
    "text, HTML, pictures, invisible characters and sources that nothing scans would print what no "
    "scan sees. What the paper needs of them stands in its style files.",
    "write it plainly; a number through a claim, a figure through \\kitfigure",
)
UNREAD = Code(
    "TEXT02",
    "error",
    "a file of the paper that no check reads",
    "paper/ holds sources, findings, tables and a few lists, each held to account by a check. A "
    "picture, a style or a text beside them could print anything.",
    "move it out of paper/; a figure is drawn from records by kit figures",
)
HELD = Code(
    "TEXT03",
    "error",
    "a generated file that git holds",
    "paper/generated/ is made anew from records at each build, and ignored by git. One that was "
    "committed would be set as it is by whoever runs LaTeX alone.",
    "git rm --cached -r paper/generated",
)
LEFTOVER = Code(
    "TEXT04",
    "warning",
    "a file in paper/generated that no build makes",
    "What the paper takes from records is made anew at each build, by names that follow from "
    "paper/evidence.toml. Another file there was left by an earlier state, or was never made from "
    "records; LaTeX run alone would set it, and on no other machine is it there.",
    "make paper, which removes it; what you wrote yourself, keep elsewhere",
)

_LISTS = frozenset(
    {
        "README.md",
        "allowed-numbers.toml",
        "claims.sty",
        "evidence.toml",
        "layout.sty",
        "main.tex",
        "published.toml",
        "references.bib",
    }
)
_FINDING = re.compile(r"findings/[^/]+\.md")


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Look at every text for what it conceals, and at every file for who reads it."""
    view = paper(repository)
    sources = frozenset(d.name for d in view.documents if d.scanned)
    for document in view.documents:
        for line, what in concealed(document, sources):
            yield CONCEALED.at(document.name, line, "", what, "text as it is printed")
    for line, what in _unseen_in_evidence(repository.root):
        yield CONCEALED.at(EVIDENCE.as_posix(), line, "", what, "text as it is printed")
    top = repository.root / PAPER
    for path in sorted(top.rglob("*")):
        inside = PurePosixPath(path.relative_to(top).as_posix())
        if ".git" in inside.parts or (path.is_dir() and not path.is_symlink()):
            continue  # a repository in here is told by the check of the history
        if not _is_read(inside, is_regular(path)):
            got = "a file" if is_regular(path) else "no regular file"
            yield UNREAD.at(repository.show(path), 0, "", got, "sources, findings, tables, lists")
    git = repository.git(repository.root)
    if git is not None and (repository.root / GENERATED).is_relative_to(git.top):
        for name in git.tracked(repository.root / GENERATED):
            yield HELD.at(repository.show(git.top / name), 0, "", "in git's index", "ignored")
    if not view.evaluation.study_problems:  # else it is not known which figures there are to be
        for path in strays(repository.root, made_names(view.evaluation.studies)):
            yield LEFTOVER.at(repository.show(path), 0)


def _unseen_in_evidence(root: Path) -> Iterator[tuple[int, str]]:
    """In the file as it is, and in the reasons that it spells by escapes."""
    path = root / EVIDENCE
    try:
        studies = load_evidence(root)
    except ClaimError:
        return  # the check of claims says so
    lines = path.read_text("utf-8").splitlines() if studies else []
    for number, line in enumerate(lines, 1):
        yield from ((number, what) for what in unseen(line))
    for study in studies.values():
        for run, why in study.left_out.items():
            yield from ((0, f"run {run}: {what}") for what in unseen(why))


def _is_read(inside: PurePosixPath, regular: bool) -> bool:
    """Whether some check reads this file of paper/, by its path from there."""
    path = PAPER / inside
    if path.is_relative_to(GENERATED) or path.is_relative_to(TABLES):
        return True  # told below; held by the check of tables
    if not regular:
        return False
    name = str(inside)
    return name in _LISTS or inside.suffix == ".tex" or bool(_FINDING.fullmatch(name))


CHECK = Check(
    "sources",
    "The paper is made of texts that the other checks read, and of nothing beside them.",
    (CONCEALED, UNREAD, HELD, LEFTOVER),
    check,
)
