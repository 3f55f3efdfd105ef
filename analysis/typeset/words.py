"""Text of records as LaTeX.

Invariant: no character of a record is a command in the paper, and none is lost; one that the
paper's fonts lack is told by its code point.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from analysis.table import TEX_SPECIAL

# And those that mean another character between quotes or in ligatures, or that a font lacks.
_SPECIAL = {
    **TEX_SPECIAL,
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "-": "-{}",
    "\u00b5": r"\textmu{}",
    "\u03bc": r"\textmu{}",
    "\u00b1": r"\textpm{}",
    "\u00d7": r"\texttimes{}",
    "\u2264": r"\ensuremath{\le}",
    "\u2265": r"\ensuremath{\ge}",
    "\u2026": r"\dots{}",
    "\u2013": r"\textendash{}",
    "\u2014": r"\textemdash{}",
    "\u201c": r"\textquotedblleft{}",
    "\u201d": r"\textquotedblright{}",
    "\u2019": r"\textquoteright{}",
    "\u2018": r"\textquoteleft{}",
    "\u00a0": "~",
    "\t": " ",
    "\n": " ",
}
# LaTeX knows the letters of Latin-1 in its T1 fonts as they are.
_LATIN = re.compile(r"[\x20-\x7e\u00c0-\u00ff]")
_BREAKS = re.compile(r"(?<=[./:,_-])(?=[A-Za-z0-9])")


def escaped(text: str) -> str:
    """The text as LaTeX prints it."""
    return "".join(_character(one) for one in text)


def sentence(text: str) -> str:
    """The text as a sentence: a capital to begin with, unless it begins with a name like p95."""
    first, second = text[:1], text[1:2]
    return escaped((first.upper() if not second.isdigit() else first) + text[1:].rstrip(".")) + "."


def code(text: str) -> str:
    """The text in typewriter letters, breakable after its punctuation, digests every eight."""
    parts = [
        piece
        for part in _BREAKS.split(text)
        for piece in (re.findall(".{1,8}", part) if re.fullmatch("[0-9a-f]{24,}", part) else [part])
    ]
    return r"\texttt{" + r"\allowbreak{}".join(escaped(part) for part in parts) + "}"


def command(name: str, *arguments: str) -> str:
    r"""A macro with its arguments, each LaTeX already: \name{one}{two}."""
    return "\\" + name + "".join(f"{{{argument}}}" for argument in arguments)


def joined(lines: Iterable[str]) -> bytes:
    """A generated file."""
    head = "% Made by `make paper` from the records and the paper's own citations; do not edit."
    return ("\n".join([head, *lines]) + "\n").encode()


def _character(one: str) -> str:
    if one in _SPECIAL:
        return _SPECIAL[one]
    if _LATIN.fullmatch(one):
        return one
    name = unicodedata.name(one, "")
    return rf"[U+{ord(one):04X}{f' {name}' if name else ''}]"
