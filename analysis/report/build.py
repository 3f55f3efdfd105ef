"""The report's content, from verified records and what was made of them.

Invariant: synthetic runs and measured ones never share a page; the page speaks of nothing but these
runs, so a finding or claim that rests on others alone is not on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from analysis.claiming.evaluation import Evaluation
from analysis.claiming.reading import StudyRun
from analysis.comparing.verdict import Verdict
from analysis.figures.figure import Figure
from analysis.findings import Finding
from analysis.not_begun import not_begun
from analysis.one_kind import require_one_kind
from analysis.pools import Pool, pools
from analysis.publish import require_distinct
from analysis.reading import Run
from analysis.report.check import commands
from analysis.report.claim_views import ClaimBook
from analysis.report.finding_views import finding_views
from analysis.report.images import svg_uri
from analysis.report.model import FigureView, Report, StratumView, TableView
from analysis.report.run_views import (
    boot_ends,
    gpu_names,
    run_view,
    told_ends,
    unused_views,
    utc,
)
from analysis.report.sources import SourceBook
from analysis.report.table_views import Links, figure_data, table_view
from analysis.report.verdict_views import VerdictBook, verdict_counts
from analysis.study_tables import study_of_runs
from analysis.tables import study_tables
from analysis.trace import run_trace

_APART = ("calibration", "void")  # tables that have a section of their own


@dataclass(frozen=True, slots=True)
class Material:
    """What the page is made of. `data`: run id -> the directory in which the run's stands.

    `figures`: each with the runs it is of and its SVG, b"" where there is nothing to draw.
    `evidence`: where the records of paper/evidence.toml stand.
    """

    runs: tuple[Run, ...]
    studied: Mapping[str, StudyRun]
    data: Mapping[str, Path]
    verdicts: tuple[Verdict, ...]
    figures: tuple[tuple[tuple[str, ...], Figure, bytes], ...]
    figures_note: str
    findings: tuple[Finding, ...]
    evaluation: Evaluation
    root: Path
    evidence: Path


def build(material: Material) -> Report:
    """The whole report. FormatError when synthetic and real runs are mixed."""
    require_one_kind(material.runs)
    runs = sorted(material.runs, key=lambda run: run.run_id)
    synthetic = runs[0].started.synthetic
    sources = SourceBook(material.studied, material.root, material.data)
    claims = ClaimBook(material.evaluation, sources, material.root, material.evidence)
    traces = {
        run.run_id: run_trace(material.studied[run.run_id], material.data[run.run_id])
        for run in runs
    }
    groups = strata(runs)
    names = _names([tuple(run.run_id for run in group) for _, group in groups], material)
    verdicts = VerdictBook(material.verdicts, sources, claims)
    seals = {trace.seal: run_id for run_id, trace in traces.items()}
    findings = finding_views(material.findings, seals, claims)
    figures = tuple(
        _figure(figure, svg, f"figure-{number}", names[ids] if len(groups) > 1 else "")
        for number, (ids, figure, svg) in enumerate(material.figures, 1)
    )
    shown = [
        _stratum(pool, group, (number, name), material, sources, claims)
        for number, ((pool, group), name) in enumerate(zip(groups, names.values(), strict=True), 1)
    ]
    unused = unused_views(runs, sources)
    return Report(
        "What was measured, and how sure it is",
        "Speculative decoding under FP8 on vLLM 0.29.0",
        synthetic,
        _summary(runs),
        tuple((word, str(count)) for word, count in verdict_counts(material.verdicts)),
        verdicts.groups,
        verdicts.decided,
        verdicts.not_applicable,
        findings,
        figures,
        material.figures_note,
        tuple(view for view, _ in shown),
        unused,
        tuple(told for _, group in groups for told in not_begun(group)),
        tuple(table for _, apart in shown for table in apart),
        tuple(_studies(material, sources)),
        tuple(
            run_view(run, traces[run.run_id], f"run-{number}") for number, run in enumerate(runs, 1)
        ),
        commands(runs, traces, claims.claims, {run.run_id: _place(material, run) for run in runs}),
        claims.claims,
        sources.sources,
    )


def strata(runs: Sequence[Run]) -> list[tuple[Pool | None, list[Run]]]:
    """Runs in groups that may be pooled, with their pool where they are several; each in one.

    ForeignDirectoryError: two of them are the same run, which is no replicate of itself.
    """
    require_distinct(runs)
    pooled = [(pool, pool.members(runs)) for pool in pools(runs)]
    together = {run.run_id for _, group in pooled for run in group}
    alone = [(None, [run]) for run in runs if run.run_id not in together]
    return sorted([*pooled, *alone], key=lambda group: group[1][0].run_id)


def _stratum(
    pool: Pool | None,
    group: list[Run],
    called: tuple[int, str],
    material: Material,
    sources: SourceBook,
    claims: ClaimBook,
) -> tuple[StratumView, list[TableView]]:
    """The tables of one group, and those of them that have a section of their own."""
    number, title = called
    ids = tuple(run.run_id for run in group)
    study = _study(ids, material.evaluation)
    links = Links(
        lambda row, table: sources.of_row(row, table, ids),
        claims.anchor if study else lambda _: "",
        study,
    )
    view = partial(table_view, links=links, root=material.root)
    notes = (pool.note,) if pool else ()
    made = {table.name: table for table in study_tables(group, notes)}
    tables = tuple(
        view(table, f"table-{number}-{name}") for name, table in made.items() if name not in _APART
    )
    calibration = view(made["calibration"], f"table-{number}-calibration")
    return StratumView(f"study-{number}", title, ids, tables), [calibration]


def _names(groups: Sequence[tuple[str, ...]], material: Material) -> dict[tuple[str, ...], str]:
    """What each group is called: its study, or else its plan; a run too, where two are alike."""
    plans = {run.run_id: run.started.plan.id for run in material.runs}
    names = {ids: _study(ids, material.evaluation) or plans[ids[0]] for ids in groups}
    alike = Counter(names.values())
    return {ids: name if alike[name] == 1 else f"{name}, {ids[0]}" for ids, name in names.items()}


def _studies(material: Material, sources: SourceBook) -> Iterator[TableView]:
    """What several runs of one plan carried out of it together, and their hosts."""
    for number, study in enumerate(study_of_runs(list(material.studied.values())), 1):
        links = Links(
            lambda row, table, ids=study.runs: sources.of_row(row, table, ids),  # type: ignore[misc]
            lambda _: "",
            "",
        )
        for table in study.tables:
            yield table_view(table, f"plan-{number}-{table.name}", links, material.root)


def _study(runs: tuple[str, ...], evaluation: Evaluation) -> str:
    """The study whose evidence is exactly these runs; "" where there is none."""
    for study in evaluation.studies.values():
        if set(study.runs) == set(runs) and study.id not in evaluation.study_problems:
            return study.id
    return ""


def _figure(figure: Figure, svg: bytes, anchor: str, of: str) -> FigureView:
    return FigureView(
        anchor,
        f"{figure.title}: {of}" if of else figure.title,
        figure.caption,
        figure.alt,
        svg_uri(svg) if svg else "",
        figure.absent,
        figure_data(figure.data, f"{anchor}-data"),
    )


def _place(material: Material, run: Run) -> str:
    """The run's directory from the project's root, or from above the records where that is out."""
    path = material.data[run.run_id] / run.run_id
    above = material.data[run.run_id].parent
    return path.relative_to(
        material.root if path.is_relative_to(material.root) else above
    ).as_posix()


def _summary(runs: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    boots = [boot for run in runs for boot in run.boots if boot.planned is not None]
    ends = sum(map(boot_ends, runs), Counter[str]())
    windows = [w for boot in boots for w in boot.windows if not w.window.by_peer]
    used = sum(len(boot.usable_windows) for boot in boots)
    hosts = {run.host_id for run in runs}
    gpus = dict.fromkeys(gpu_names(run.hosts[0].facts) for run in runs if run.hosts)
    first = utc(min(run.started.clock.realtime_ns for run in runs))
    last = utc(max((run.ended or run.started).clock.realtime_ns for run in runs))
    return (
        ("runs", str(len(runs))),
        ("hosts", f"{len(hosts)} ({', '.join(gpus)})"),
        ("planned boots", told_ends(ends)),
        ("windows used", f"{used} of {len(windows)}"),
        ("measured", f"{first} to {last.removeprefix(first[:11])}"),
    )
