"""No numeral stands in paper or findings but through a claim, or with a reason on record."""

from __future__ import annotations

import re
from collections.abc import Iterator

from analysis.claiming.documents import Document
from analysis.claiming.numerals import (
    ALLOWED,
    Allowed,
    Numeral,
    is_allowed,
    load_allowed,
    measured_numerals,
    numerals,
)
from audit.finding import Check, Code, Finding
from audit.paper import paper
from audit.repository import RepositoryView
from records.errors import ClaimError
from records.run_directory import is_regular

LOOSE = Code(
    "NUM01",
    "error",
    "a numeral that no claim prints",
    r"In paper/*.tex and paper/findings/ a number comes through \claim or [value](claim:id), so "
    "that it can be computed again; so do number words with a unit. Numerals in names (FP8, F001), "
    "keys and lengths are none. In README and bibliography the same holds of every number with a "
    "unit that is measured here, in a style file of every number that is no length or option.",
    "cite a claim, or list value, place, phrase and reason in paper/allowed-numbers.toml",
)
LIST = Code(
    "NUM02",
    "error",
    "paper/allowed-numbers.toml cannot be used",
    "Each entry has value, place, phrase and reason, none of them empty, and the phrase holds the "
    "value: an exception without a reason is none.",
    "complete the entry",
)
UNUSED = Code(
    "NUM03",
    "warning",
    "an allowed number that stands nowhere",
    "An exception that nothing needs any more would cover the next number by accident.",
    "take the entry out of paper/allowed-numbers.toml",
)

# In a style file: parameters, their number, lengths, assignments, colours, the date of the package.
_STYLE = re.compile(
    r"#+[0-9]|\[[0-9]\]|-?[0-9.]*[0-9](?:em|ex|pt|mm|cm|in)\b|=-?[0-9]+\b"
    r"|\{rgb\}\{[0-9.,]*\}|\\Provides[A-Za-z]*\{[^{}]*\}\[[^\]]*\]"
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Look for numerals in every document whose numbers must have an origin."""
    entries: tuple[Allowed, ...] = ()
    try:
        entries = load_allowed(repository.root)
    except ClaimError as error:
        yield LIST.at(ALLOWED.as_posix(), 0, error.message)
    used: set[Allowed] = set()
    texts = [*paper(repository).documents, *_beside(repository)]
    for document in texts:
        for numeral in _numerals(document):
            covering = [entry for entry in entries if is_allowed(numeral, entry)]
            used.update(covering)
            if not covering:
                got = f"{numeral.text} in: {numeral.context.strip()[:80]}"
                yield LOOSE.at(numeral.file, numeral.line, "", got)
    for entry in entries:
        if entry not in used:
            message = f"{entry.value} in {entry.place}: {UNUSED.title}"
            yield UNUSED.at(ALLOWED.as_posix(), 0, message, entry.phrase)


def _beside(repository: RepositoryView) -> Iterator[Document]:
    """The bibliography, and the style files without lengths and options."""
    folder = repository.root / "paper"
    for path in sorted([*folder.glob("*.bib"), *folder.glob("*.sty")]):
        if is_regular(path):
            text = path.read_text(encoding="utf-8", errors="replace")
            if path.suffix == ".sty":
                text = _STYLE.sub(lambda match: " " * len(match[0]), text)
            name = path.relative_to(repository.root).as_posix()
            yield Document(name, "tex", text, path.suffix == ".sty")


def _numerals(document: Document) -> Iterator[Numeral]:
    return numerals(document) if document.scanned else measured_numerals(document)


CHECK = Check(
    "numerals",
    "No numeral stands in paper or findings but through a claim, or with a reason on record.",
    (LOOSE, LIST, UNUSED),
    check,
)
