"""What in a text would print something that reading its source does not show.

Invariant: text in, places out. Numbers are looked for in the source; so whatever makes the printed
text another one than the source (macros, counters, code points, comments that are none, pictures)
is refused in the texts themselves. Style files may define what they like and hold no text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath

from analysis.claiming.documents import Document
from analysis.typeset.generated import TEXTS

# Definitions, arithmetic, code points, verbatim text, files and pictures that nothing scans.
_TEX_COMMANDS = re.compile(
    r"\\(?:"
    r"(?:re)?newcommand\*?|providecommand\*?|DeclareRobustCommand\*?|NewDocumentCommand|"
    r"(?:re)?newenvironment\*?|[egx]?def|let|futurelet|csname|catcode|active|scantokens|"
    r"char|symbol|accent|mathchar|romannumeral|number|numexpr|dimexpr|the|value|arabic|[Rr]oman|"
    r"[Aa]lph|setcounter|addtocounter|stepcounter|newcounter|count|advance|multiply|fpeval|inteval|"
    r"pgfmath[A-Za-z]*|directlua|luaexec|write|immediate|openin|openout|read|special|pdfliteral|"
    r"verb|verbatiminput|lstinputlisting|lstinline|mint[A-Za-z]*|VerbatimInput|subfile|import|"
    r"includeonly|InputIfFileExists|IfFileExists|includegraphics|includepdf|includesvg|"
    r"reflectbox|rotatebox|scalebox|resizebox|shorthandoff|usetikzlibrary|tikz"
    r")(?![A-Za-z])"
)
_TEX_VERBATIM = re.compile(
    r"\\begin\{(?:verbatim|Verbatim|lstlisting|minted|comment|filecontents|tikzpicture)\*?\}"
)
_TEX_CODES = re.compile(r"\^\^")
_TEX_INPUT = re.compile(r"\\(?:input|include)(?![A-Za-z])(?:\{([^{}\n]*)\})?")
# Packages of the TeX installation have plain names; a path would be a style that nobody reads.
_TEX_PACKAGE = re.compile(
    r"\\(?:usepackage|RequirePackage|documentclass|LoadClass|bibliography|bibliographystyle)"
    r"(?:\[[^\]\n]*\])?\{([^{}\n]*)\}"
)
_PLAIN = re.compile(r"[A-Za-z0-9-]+(?:, ?[A-Za-z0-9-]+)*")
_TEX_FIGURE = re.compile(r"\\kitfigure(?![A-Za-z])(?:\{([^{}\n]*)\})?")
_FIGURE = re.compile(r"[a-z0-9-]+(?:/[a-z0-9-]+)?")
_GENERATED = frozenset(text.as_posix() for text in TEXTS)
_HTML = re.compile(r"<(?:!--|/?[A-Za-z][A-Za-z0-9]*(?:[ />]|$))")
_IMAGE = re.compile(r"!\[[^\]\n]*\][(\[]")
_INLINE_CODE = re.compile(r"`[^`\n]*`")
# Zero width, and what turns the order of characters over (UAX 9): Cf, but for the soft hyphen.
_SHY = "\u00ad"


def concealed(document: Document, sources: frozenset[str]) -> Iterator[tuple[int, str]]:
    """(line, what) of each such place; `sources`: the names of all documents that are scanned."""
    printed = document.lines
    for number, (raw, line) in enumerate(zip(document.text.split("\n"), printed, strict=True), 1):
        yield from ((number, what) for what in unseen(raw))
        if document.kind == "tex":
            yield from ((number, what) for what in _in_tex(raw, line, sources))
        elif document.scanned:
            bare = _INLINE_CODE.sub("", raw)
            yield from ((number, f"HTML: {m[0]}") for m in _HTML.finditer(bare))
            yield from ((number, f"a picture: {m[0]}") for m in _IMAGE.finditer(bare))


def unseen(line: str) -> Iterator[str]:
    """What of a line no reader sees, or sees in another order."""
    for char in line:
        if char == "\ufffd":
            yield "bytes that are not UTF-8"
        elif char != "\t" and unicodedata.category(char) in ("Cc", "Cf") and char != _SHY:
            yield f"an invisible character, U+{ord(char):04X}"


def _in_tex(raw: str, line: str, sources: frozenset[str]) -> Iterator[str]:
    # A comment ends \verb and \catcode tricks as far as the scan goes, so they count in it too.
    for pattern in (_TEX_COMMANDS, _TEX_VERBATIM, _TEX_CODES):
        yield from (match[0] for match in pattern.finditer(raw))
    for pattern, sound in ((_TEX_PACKAGE, _PLAIN), (_TEX_FIGURE, _FIGURE)):
        for match in pattern.finditer(line):
            if match[1] is None or not sound.fullmatch(match[1]):
                yield f"{match[0]}: not a plain name"
    for match in _TEX_INPUT.finditer(line):
        target = match[1]
        if target is None or _named(target) not in sources | _GENERATED:
            yield f"{match[0]}: no source that is scanned"


def _named(target: str) -> str:
    """The document that \\input{target} reads; TeX looks from the folder of main.tex."""
    path = PurePosixPath("paper") / target
    return str(path if path.suffix == ".tex" else path.with_name(path.name + ".tex"))
