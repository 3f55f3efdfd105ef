"""Claims and published figures as LaTeX: the file that paper/claims.sty reads.

Invariant: the bytes depend on the values alone; one line a value, in order of id.
"""

from __future__ import annotations

from collections.abc import Mapping

from analysis.claiming.claim import Value
from analysis.claiming.documents import GENERATED
from analysis.published import Published

CLAIMS_TEX = GENERATED / "claims.tex"

_ESCAPES = {"%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "$": r"\$", "µ": r"\textmu{}"}


def claims_tex(values: Mapping[str, Value], published: Mapping[str, Published]) -> bytes:
    """The content of paper/generated/claims.tex."""
    lines = ["% Made by `make paper-claims` from the records; do not edit."]
    for id_, value in sorted(values.items()):
        lines.append(rf"\kitvalue{{claim}}{{{id_}}}{{{_tex(value.printed)}}}")
    for id_, figure in sorted(published.items()):
        lines.append(rf"\kitvalue{{published}}{{{id_}}}{{{_tex(figure.printed)}}}")
    return ("\n".join(lines) + "\n").encode()


def _tex(printed: str) -> str:
    number, space, unit = printed.partition(" ")
    escaped = ["".join(_ESCAPES.get(ch, ch) for ch in part) for part in (number, unit)]
    return r"\,".join(escaped) if space else escaped[0]
