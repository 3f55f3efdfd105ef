"""Numerals in paper and findings that no claim prints, and the list of those that may stand.

Invariant: every numeral of a scanned text, in digits of any script or in words before a unit, is
part of a citation, of a name (FP8, F001, p95), of a LaTeX key or length, or of an entry of
paper/allowed-numbers.toml. Where text is not scanned as a whole (README, bibliography), the same
holds of every number with a unit that this project measures.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from analysis.claiming.documents import Document, without_citations
from analysis.claiming.toml_file import toml_text, toml_value
from records.errors import ClaimError

ALLOWED = Path("paper") / "allowed-numbers.toml"

# A numeral may stand within a word that is no name: x17, _17_.
_WORD = re.compile(r"(?<![0-9])[0-9]+(?:[.,][0-9]+)*")
# A name is a word that begins with a capital letter, or with one of these before its digits.
_NAME = re.compile(
    r"(?<![A-Za-z0-9_$])(?:[A-Z][A-Za-z0-9]*|(?:[bcefhkmnpsv]|fp|bf|sm|int|rfc|tp|pp|dp|ep|cu|gpt|"
    r"(?:mx|nv)fp|qwen|llama)[0-9][A-Za-z0-9]*)(?:_[A-Za-z0-9]+)*"
)
_LEAST_NUMERIC = "\u0080"
# Arguments that are keys, files or lengths and print no number of their own; \url prints its own.
_TEX_KEYS = re.compile(
    r"\\(?:label|ref|eqref|autoref|input|include|bibliography|bibliographystyle|usepackage|"
    r"documentclass|finding|hypersetup|geometry|kitfigure)(?:\[[^\]\n]*\])?\{[^{}\n]*\}"
    r"|\\(?:vspace|hspace)\*?\{[^{}\n]*\}|\\\\\[[^\]\n]*\]"
)
# The note in \cite[p. 3]{key} is printed, the key is not.
_TEX_CITE = re.compile(r"(\\cite[a-z]*)((?:\[[^\]\n]*\])*)(\{[^{}\n]*\})")
_TEX_SPEC = re.compile(
    r"\\begin\{(?:tabular|figure|table)\*?\}(?:\[[^\]\n]*\])?(?:\{(?:[^{}\n]|\{[^{}\n]*\})*\})?"
)
# The end of a command's name is no letter of a word: \relax17 prints 17.
_TEX_COMMAND = re.compile(r"\\[A-Za-z@]+\*?")
_TARGET = re.compile(r"(?<=\])\((?!claim:|published:)[^)\s]*\)")

_UNITS = (
    r"(?:%|‰|\\%|per[ -]?cent\b|percent\b|percentage points?\b|[mµμun]s\b|milliseconds?\b|"
    r"microseconds?\b|tok(?:ens?)?/(?:s|step)\b|req(?:uests?)?/s\b|(?:tokens?|requests?) (?:per|a) "
    r"(?:second|step)\b|times (?:as|the|faster|slower|more|less|higher|lower)\b|fold\b|-fold\b|"
    r"[\u00d7x](?![A-Za-z0-9]))"
)
_THEN_UNIT = re.compile(rf"(?:[.,][0-9]+)*(?:[ ~\u00a0]*|\\[,;]){_UNITS}")
_MEASURED = re.compile(
    rf"(?<![A-Za-z0-9_.-])[0-9]+(?:[.,][0-9]+)*(?:[ ~\u00a0]|\\[,;])?(?={_UNITS})"
)
_ONES = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|"
    "sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
)
_MORE = "faster|slower|more|less|fewer|higher|lower|longer|shorter|better|worse|larger|smaller"
_PARTS = "half|thirds?|quarters?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|hundredths?"
_IN_WORDS = re.compile(
    rf"\b(?:(?:{_ONES}|hundred|thousand|half|point|and)[ -])*(?:{_ONES}|hundred|half)"
    rf"(?:[ \n~-](?={_UNITS}|seconds\b))"
    r"|\b(?:twice|thrice|double[ds]?|doubling|triple[ds]?|quadrupled?|halve[ds]?|halving)\b"
    r"|\b(?:hundreds?|thousands?|millions?|billions?|dozens?)\b"
    rf"|\b(?:(?:{_ONES}|hundred|thousand|several|many)-?)+fold\b"
    r"|\borders?[ \n~]of[ \n~]magnitudes?\b"
    rf"|\b(?:{_PARTS})(?=(?:[ \n~]as)?[ \n~](?:{_MORE}|as)\b)",
    re.IGNORECASE,
)


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
    left = [_left(document, line) for line in document.lines]
    following = [*left[1:], ""]
    each = zip(document.lines, left, following, strict=True)
    for number, (printed, line, after) in enumerate(each, 1):
        for start, text in _in_digits(line, after):
            yield Numeral(document.name, number, text, start, printed)
    yield from _in_words(document, left)


def measured_numerals(document: Document) -> Iterator[Numeral]:
    """Every number with a unit of measurement that is not part of a citation."""
    for number, printed in enumerate(document.lines, 1):
        line = _TARGET.sub(_blank, without_citations(document.kind, printed))
        for match in _MEASURED.finditer(line):
            text = match[0].strip(" ~\u00a0\\,;")
            yield Numeral(document.name, number, text, match.start(), printed)


def _left(document: Document, printed: str) -> str:
    """A line with all blanked out that prints no number."""
    line = without_citations(document.kind, printed)
    if document.kind == "tex":
        line = _TEX_CITE.sub(lambda m: " " * len(m[1]) + m[2] + " " * len(m[3]), line)
        line = _TEX_SPEC.sub(_blank, _TEX_KEYS.sub(_blank, line))
        return _TEX_COMMAND.sub(_blank, line)
    return _TARGET.sub(_blank, line)


def _in_digits(line: str, after: str) -> Iterator[tuple[int, str]]:
    # What a unit follows is a number, whatever letters it begins with: H2000 tok/s.
    whole = f"{line} {after}"
    names = [m.span() for m in _NAME.finditer(whole) if not _THEN_UNIT.match(whole, m.end())]
    for match in _WORD.finditer(line):
        # What goes on beyond a name is none: c13.92.
        name_end = next((end for start, end in names if start <= match.start() < end), None)
        start = match.start() if name_end is None else name_end
        text = line[start : match.end()]
        yield from ((start + len(text) - len(t), t) for t in (text.lstrip(".,"),) if t)
    # Other scripts, superscripts, fractions, Roman and Chinese numerals.
    for at, char in enumerate(line):
        if char >= _LEAST_NUMERIC and unicodedata.numeric(char, None) is not None:
            yield at, char


def _in_words(document: Document, left: Sequence[str]) -> Iterator[Numeral]:
    """Numbers in words that a unit follows, over line ends too."""
    text = "\n".join(left)
    for match in _IN_WORDS.finditer(text):
        first, last = text.count("\n", 0, match.start()), text.count("\n", 0, match.end())
        start = match.start() - (text.rfind("\n", 0, match.start()) + 1)
        context = " ".join(document.lines[first : last + 1])
        word = match[0].replace("\n", " ").strip(" -~")
        yield Numeral(document.name, first + 1, word, start, context)


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
    return parse_allowed(toml_text(path)) if path.is_file() else ()


def parse_allowed(text: str) -> tuple[Allowed, ...]:
    """Read `[[number]]` entries of value, place, phrase and reason, none of them empty."""
    value = toml_value(text, ALLOWED)
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
    if allowed.value == allowed.phrase.strip():
        raise ClaimError(
            f"{ALLOWED}: entry {index}: the phrase is the value alone, and so any place"
        )
    return allowed


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
