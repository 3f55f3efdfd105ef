"""All that the paper needs of the records, as the files of paper/generated.

Invariant: the bytes follow from the runs that paper/evidence.toml names and from the sources under
paper/; nothing else is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.claiming.documents import GENERATED
from analysis.claiming.evaluation import evaluate_project
from analysis.claiming.tex import CLAIMS_TEX, claims_tex
from analysis.comparing.against_published import published_verdicts
from analysis.figures import Figure, render, study_figures, verdicts_figure
from analysis.findings import parse
from analysis.published import load_published
from analysis.streaming.large_run import read_run_in_batches
from analysis.table import as_csv
from analysis.typeset.more_figures import more_figures_tex, shown_figures
from analysis.typeset.provenance import cited_claims, findings_tex, provenance_tex
from analysis.typeset.runs import newest_record, run_names, runs_tex
from analysis.typeset.verdicts import verdict_table_tex, verdicts_tex
from records.errors import ClaimError
from records.run_directory import RunDirectory

FINDINGS = Path("paper") / "findings"


@dataclass(frozen=True, slots=True)
class PaperFiles:
    """`files`: path below the project's root -> bytes. `epoch`: the paper's date, s since 1970."""

    files: Mapping[Path, bytes]
    epoch: int


def paper_files(root: Path, data: Path, cache: Path) -> PaperFiles:
    """Everything generated that the paper's sources include. `cache`: for large runs.

    ClaimError: the evidence cannot be read. FormatError: a finding without the form of one.
    ToolMissingError: matplotlib is not installed.
    """
    evaluation = evaluate_project(root, data)
    for study, problem in evaluation.study_problems.items():
        raise ClaimError(f"study {study or '?'}: {problem}", remedy="make audit says more")
    published = load_published(root)
    names = run_names(evaluation.studies)
    verdicts = published_verdicts(tuple(evaluation.runs.values()), published)
    findings = [
        parse(path.read_text(encoding="utf-8")) for path in sorted((root / FINDINGS).glob("F*.md"))
    ]
    figures = {
        study.id: study_figures(
            [read_run_in_batches(RunDirectory(data / run), cache) for run in sorted(study.runs)]
        )
        for study in evaluation.studies.values()
    }
    texts = {
        "provenance": provenance_tex(cited_claims(root), evaluation, published, names),
        "findings": findings_tex(findings),
        "runs": runs_tex(evaluation.runs, names, data),
        "verdict-table": verdict_table_tex(verdicts),
        "verdicts": verdicts_tex(verdicts, names),
        "more-figures": more_figures_tex(figures, shown_figures(root)),
    }
    files = {GENERATED / f"{name}.tex": text for name, text in texts.items()}
    files[CLAIMS_TEX] = claims_tex(evaluation.values, published)
    files |= _drawn(GENERATED / "figures", [verdicts_figure(verdicts)])
    for study, found in figures.items():
        files |= _drawn(GENERATED / "figures" / study, found)
    return PaperFiles(files, newest_record(evaluation.runs))


def _drawn(directory: Path, figures: Sequence[Figure]) -> dict[Path, bytes]:
    """Each figure with its data, <name>.pdf and <name>.csv."""
    files = {}
    for figure in figures:
        files[directory / f"{figure.name}.pdf"] = render(figure, "pdf")
        files[directory / f"{figure.name}.csv"] = as_csv(figure.data).encode()
    return files
