"""What the project says of itself: paper sources, findings, README; and the claims cited there.

Invariant: a citation that does not parse is a citation of nothing, and is reported, never ignored.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from records.run_directory import is_regular

Kind = Literal["tex", "markdown"]
Scheme = Literal["claim", "published"]

FINDINGS = Path("paper") / "findings"
GENERATED = Path("paper") / "generated"
_TABLES = Path("paper") / "tables"

_MARKDOWN = re.compile(r"\[([^\]\n]*)\]\((claim|published):([^)\s]*)\)")
_TEX = re.compile(r"\\(claim|published)\{([^{}\n]*)\}")
# What looks like a citation and is none: a missing brace, a bare scheme, a line end inside, and the
# other ways in which Markdown writes a link: [1]: claim:id, <claim:id>, href="claim:id".
_MARKDOWN_LOOSE = re.compile(r"(?:[(<\"'=]|\]:)\s*(?:claim|published):")
_TEX_LOOSE = re.compile(r"\\(?:claim|published)(?![A-Za-z])")
_TEX_COMMENT = re.compile(r"(?<!\\)%.*")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
# What of a finding's front matter is printed: everything else there is an id, a digest or a word.
_PRINTED_KEYS = ("title: ", "defect: ")
_CODE = re.compile(r"`[^`\n]*`")


@dataclass(frozen=True, slots=True)
class Document:
    """One text. `name`: its path as shown. `scanned`: whether its numerals need an origin."""

    name: str
    kind: Kind
    text: str
    scanned: bool

    @property
    def lines(self) -> list[str]:
        """Its lines as they are printed: no TeX comments, keys of front matter, code in the README.

        HTML entities are read as what they show.
        """
        text = self.text
        if self.kind == "markdown":
            text = _FRONT_MATTER.sub(_printed_keys, text)
        lines = text.split("\n")
        if self.kind == "markdown":
            lines = [html.unescape(line).replace("\n", " ") for line in lines]
        if self.kind == "tex":
            return [_TEX_COMMENT.sub("", line) for line in lines]
        # The README shows how claims are written; a finding has no reason to.
        return lines if self.scanned else [_CODE.sub(_blank, line) for line in lines]


@dataclass(frozen=True, slots=True)
class Citation:
    """One place where a claim is cited. `shown`: the text there; "" in TeX, where a macro prints.

    `id` is "" where the citation does not parse.
    """

    file: str
    line: int
    scheme: Scheme
    id: str
    shown: str


def documents(root: Path) -> Iterator[Document]:
    """README, the paper's sources and the findings, in order of path; links are not followed."""
    readme = root / "README.md"
    if is_regular(readme):
        yield _document(root, readme, scanned=False)
    for path in sorted((root / "paper").rglob("*.tex")):
        relative = path.relative_to(root)
        if not is_regular(path):
            continue
        if not relative.is_relative_to(GENERATED) and not relative.is_relative_to(_TABLES):
            yield _document(root, path, scanned=True)
    for path in sorted(filter(is_regular, (root / FINDINGS).glob("*.md"))):
        yield _document(root, path, scanned=path.name != "README.md")


def _document(root: Path, path: Path, scanned: bool) -> Document:
    """What is not UTF-8 becomes U+FFFD, which concealment.py refuses."""
    kind: Kind = "tex" if path.suffix == ".tex" else "markdown"
    text = path.read_text(encoding="utf-8", errors="replace")
    return Document(path.relative_to(root).as_posix(), kind, text, scanned)


def citations(document: Document) -> Iterator[Citation]:
    """Every citation of a claim or a published figure, in order."""
    pattern, loose = (_TEX, _TEX_LOOSE) if document.kind == "tex" else (_MARKDOWN, _MARKDOWN_LOOSE)
    for number, line in enumerate(document.lines, 1):
        for match in pattern.finditer(line):
            if document.kind == "tex":
                yield Citation(document.name, number, _scheme(match[1]), match[2], "")
            else:
                yield Citation(document.name, number, _scheme(match[2]), match[3], match[1])
        for match in loose.finditer(pattern.sub("", line)):
            scheme = _scheme("published" if "published" in match[0] else "claim")
            yield Citation(document.name, number, scheme, "", line.strip())


def without_citations(kind: Kind, line: str) -> str:
    """The line with each citation blanked out, so that columns stay."""
    return (_TEX if kind == "tex" else _MARKDOWN).sub(_blank, line)


def _printed_keys(match: re.Match[str]) -> str:
    lines = match[0].split("\n")
    return "\n".join(line if line.startswith(_PRINTED_KEYS) else "" for line in lines)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _scheme(text: str) -> Scheme:
    return "published" if text == "published" else "claim"
