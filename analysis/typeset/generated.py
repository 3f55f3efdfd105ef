"""What belongs into paper/generated: the texts, every name, and what is none of them.

Invariant: a name outside `made_names` is of no build; whoever finds one there finds a leftover, or
something that nobody made from records.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from analysis.claiming.documents import GENERATED
from analysis.claiming.evaluation import Evaluation
from analysis.claiming.tex import CLAIMS_TEX, claims_tex
from analysis.comparing.against_published import published_verdicts
from analysis.comparing.verdict import Verdict
from analysis.findings import Finding
from analysis.published import Published
from analysis.typeset.provenance import cited_claims, findings_tex, provenance_tex
from analysis.typeset.runs import run_names, runs_tex
from analysis.typeset.verdicts import verdict_table_tex, verdicts_tex
from records.run_directory import is_regular

FIGURES = GENERATED / "figures"
MORE_FIGURES = GENERATED / "more-figures.tex"
TEXTS = (
    CLAIMS_TEX,
    MORE_FIGURES,
    *(
        GENERATED / f"{name}.tex"
        for name in ("findings", "provenance", "runs", "verdict-table", "verdicts")
    ),
)
# In the order of analysis.figures.study_figures, the same for every study.
_STUDY_FIGURES = (
    "decisions", "boots", "variance", "steps", "step-gaps", "goodput", "calibration", "timeline",
)  # fmt: skip
_VERDICTS_FIGURE = "verdicts"
_FORMS = ("pdf", "csv")


def record_texts(
    root: Path,
    data: Path,
    evaluation: Evaluation,
    published: dict[str, Published],
    findings: Sequence[Finding],
) -> tuple[dict[Path, bytes], Sequence[Verdict]]:
    """The texts that need no figure, by path below the root, and the verdicts in them."""
    names = run_names(evaluation.studies, evaluation.runs)
    verdicts = published_verdicts(tuple(evaluation.runs.values()), published)
    texts = {
        "provenance": provenance_tex(cited_claims(root), evaluation, published, names),
        "findings": findings_tex(findings),
        "runs": runs_tex(evaluation.runs, names, data),
        "verdict-table": verdict_table_tex(verdicts, names),
        "verdicts": verdicts_tex(verdicts, names),
    }
    files = {GENERATED / f"{name}.tex": text for name, text in texts.items()}
    return files | {CLAIMS_TEX: claims_tex(evaluation.values, published)}, verdicts


def made_names(studies: Iterable[str]) -> frozenset[Path]:
    """The path below the root of every file that a build over these studies makes."""
    figures = [FIGURES / _VERDICTS_FIGURE]
    figures += [FIGURES / study / name for study in studies for name in _STUDY_FIGURES]
    drawn = (figure.with_name(f"{figure.name}.{form}") for figure in figures for form in _FORMS)
    return frozenset((*TEXTS, *drawn))


def strays(root: Path, made: Collection[Path]) -> Iterator[Path]:
    """What else stands in paper/generated, in order of path: files, links, anything but folders.

    No link is followed; where paper/generated is one itself, it is what is told.
    """
    top = root / GENERATED
    if top.is_symlink():
        yield top
        return
    entries = [
        Path(folder) / name
        for folder, folders, names in os.walk(top)
        for name in (*names, *(one for one in folders if (Path(folder) / one).is_symlink()))
    ]
    for path in sorted(entries):
        if path.relative_to(root) not in made or not is_regular(path):
            yield path
