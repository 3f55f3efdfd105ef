"""Figures that the text does not speak of, for an appendix: no study in the evidence stays unseen.

Invariant: each figure of each study is in the paper once, in the text or here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from analysis.claiming.documents import documents
from analysis.figures import Figure
from analysis.typeset.words import command, escaped, joined

_SHOWN = re.compile(r"\\kitfigure\{([^{}]+)\}")


def shown_figures(root: Path) -> frozenset[str]:
    """What the paper's sources show, each as <study>/<name>."""
    return frozenset(
        match[1]
        for document in documents(root)
        if document.kind == "tex"
        for line in document.lines
        for match in _SHOWN.finditer(line)
    )


def more_figures_tex(figures: Mapping[str, Sequence[Figure]], shown: Collection[str]) -> bytes:
    """A section with the figures that are not shown; nothing where all are.

    `figures`: by study, in the order of paper/evidence.toml. One without data is left out.
    """
    lines: list[str] = []
    for study, found in figures.items():
        more = [one for one in found if f"{study}/{one.name}" not in shown and not one.absent]
        if more:
            # Floats of one study must not drift into the next.
            lines += [r"\clearpage"] if lines else []
            lines.append(command("subsection", f"Figures of {escaped(study)}"))
        for one in more:
            caption = f"{escaped(one.title)}. {escaped(one.caption)}"
            place = f"{study}/{one.name}"
            lines.append(command("kitfigure", place, f"fig:{place}", caption))
    head = [r"\section{Further figures}", r"\label{sec:more-figures}"] if lines else []
    # Floats of one appendix must not drift into the next.
    return joined([*head, *lines, *([r"\clearpage"] if lines else [])])
