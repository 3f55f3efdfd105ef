"""All that the paper needs of the records, as the files of paper/generated.

Invariant: the bytes follow from the runs that paper/evidence.toml names and from the sources under
paper/; nothing else is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.claiming.evaluation import evaluate_project
from analysis.figures import Figure, render, study_figures, verdicts_figure
from analysis.findings import Finding, parse
from analysis.published import load_published
from analysis.streaming.large_run import read_run_in_batches
from analysis.table import as_csv
from analysis.typeset.generated import FIGURES, MORE_FIGURES, record_texts
from analysis.typeset.more_figures import more_figures_tex, shown_figures
from analysis.typeset.runs import newest_record
from records.errors import ClaimError, FormatError
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
    for problem in evaluation.study_problems.values():
        raise ClaimError(
            f"the paper rests on records that cannot be used: {problem}",
            remedy="restore records/data from git, or see paper/evidence.toml and kit audit",
        )
    published = load_published(root)
    findings = read_findings(root)
    figures = {
        study.id: study_figures(
            [read_run_in_batches(RunDirectory(data / run), cache) for run in sorted(study.runs)]
        )
        for study in evaluation.studies.values()
    }
    files, verdicts = record_texts(root, data, evaluation, published, findings)
    files[MORE_FIGURES] = more_figures_tex(figures, shown_figures(root))
    files |= _drawn(FIGURES, [verdicts_figure(verdicts)])
    for study, found in figures.items():
        files |= _drawn(FIGURES / study, found)
    return PaperFiles(files, newest_record(evaluation.runs))


def read_findings(root: Path) -> tuple[Finding, ...]:
    """The findings by number. FormatError: one is no text, or has not the form of a finding."""
    found = []
    for path in sorted((root / FINDINGS).glob("F*.md")):
        try:
            found.append(parse(path.read_text(encoding="utf-8")))
        except (FormatError, UnicodeDecodeError) as error:
            name = path.relative_to(root)
            raise FormatError(f"{name}: {error}", remedy="kit audit says more") from error
    return tuple(found)


def _drawn(directory: Path, figures: Sequence[Figure]) -> dict[Path, bytes]:
    """Each figure with its data, <name>.pdf and <name>.csv."""
    files = {}
    for figure in figures:
        files[directory / f"{figure.name}.pdf"] = render(figure, "pdf")
        files[directory / f"{figure.name}.csv"] = as_csv(figure.data).encode()
    return files
