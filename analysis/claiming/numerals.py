"""Numerals in paper and findings that no claim prints, and the list of those that may stand.

Invariant: every numeral of a scanned text is part of a citation, of a name (a letter stands before
it: FP8, F001, p95), of a LaTeX key or length, or of an entry of paper/allowed-numbers.toml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import tomllib

from analysis.claiming.documents import Document, without_citations
from records.errors import ClaimError

ALLOWED = Path("paper") / "allowed-numbers.toml"

_NUMERAL = re.compile(
    r"(?<![A-Za-z0-9_])[0-9]+(?:[.,][0-9]+)*"
    # Digits beyond ASCII: other scripts, superscripts, subscripts, fractions.
    "|(?![0-9])\\d|[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u215f]"
)
# Arguments that are keys, files or lengths and print no number of their own.
_TEX_KEYS = re.compile(
    r"\\(?:label|ref|eqref|autoref|cite[a-z]*|input|include|includegraphics|bibliography|"
    r"bibliographystyle|usepackage|documentclass|url|finding|hypersetup|geometry)"
    r"(?:\[[^\]\n]*\])?\{[^{}\n]*\}"
    r"|\\(?:vspace|hspace)\*?\{[^{}\n]*\}|\\\\\[[^\]\n]*\]"
)
_TEX_SPEC = re.compile(r"\\begin\{(?:tabular|figure|table)\*?\}(?:\[[^\]\n]*\])?(?:\{[^\n]*\})?")
_TARGET = re.compile(r"(?<=\])\((?!claim:|published:)[^)\s]*\)")


@dataclass(frozen=True, slots=True)
class Numeral:
    """A numeral that is not part of a citation: where it stands, from column `start`."""

    file: str
    line: int
    text: str
    start: int
    context: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """A numeral that may stand without a claim, in files that match `place`, within `phrase`."""

    value: str
    place: str
    phrase: str
    reason: str


def numerals(document: Document) -> Iterator[Numeral]:
    """Every numeral of a document that is not part of a citation, a name, a key or a length."""
    for number, printed in enumerate(document.lines, 1):
        line = without_citations(document.kind, printed)
        if document.kind == "tex":
            line = _TEX_SPEC.sub(_blank, _TEX_KEYS.sub(_blank, line))
        else:
            line = _TARGET.sub(_blank, line)
        for match in _NUMERAL.finditer(line):
            yield Numeral(document.name, number, match[0], match.start(), printed)


def is_allowed(numeral: Numeral, entry: Allowed) -> bool:
    """Whether this entry covers that numeral."""
    if numeral.text != entry.value or not fnmatchcase(numeral.file, entry.place):
        return False
    end = numeral.start + len(numeral.text)
    at = numeral.context.find(entry.phrase)
    while at >= 0:
        if at <= numeral.start and end <= at + len(entry.phrase):
            return True
        at = numeral.context.find(entry.phrase, at + 1)
    return False


def load_allowed(root: Path) -> tuple[Allowed, ...]:
    """The list of the project; empty without the file. ClaimError says what is wrong with it."""
    path = root / ALLOWED
    return parse_allowed(path.read_text(encoding="utf-8")) if path.is_file() else ()


def parse_allowed(text: str) -> tuple[Allowed, ...]:
    """Read `[[number]]` entries of value, place, phrase and reason, none of them empty."""
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClaimError(f"{ALLOWED}: {error}") from error
    entries = value.pop("number", [])
    if value or not isinstance(entries, list):
        raise ClaimError(f"{ALLOWED}: want nothing but [[number]] entries")
    return tuple(_allowed(index, entry) for index, entry in enumerate(entries, 1))


def _allowed(index: int, entry: object) -> Allowed:
    names: Sequence[str] = ("value", "place", "phrase", "reason")
    if not isinstance(entry, dict) or set(entry) != set(names):
        raise ClaimError(f"{ALLOWED}: entry {index}: want exactly {', '.join(names)}")
    texts = [entry[name] for name in names]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise ClaimError(f"{ALLOWED}: entry {index}: each of {', '.join(names)} is a text")
    allowed = Allowed(*texts)
    if allowed.value not in allowed.phrase:
        raise ClaimError(f"{ALLOWED}: entry {index}: the phrase does not hold the value")
    return allowed


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
