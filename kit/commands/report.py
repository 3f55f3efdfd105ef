"""`kit report`: one page of what was measured, made from sealed runs."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click

from analysis.claiming.evaluation import Evaluation, evaluate_project
from analysis.claiming.reading import study_run
from analysis.comparing.against_published import published_verdicts
from analysis.figures import study_figures
from analysis.figures.figure import Figure
from analysis.figures.rendering import render
from analysis.published import load_published
from analysis.reading import Run
from analysis.report.build import Material, build, strata
from analysis.streaming.large_run import read_run_in_batches
from analysis.typeset.files import read_findings
from analysis.whole import require_place, write_whole
from kit.commands.named_runs import named_runs, sealed_here
from kit.heartbeat import heartbeat
from kit.home import Home
from kit.options import home, json_option
from kit.output import print_json, say
from kit.outside_records import Place, require_outside_records
from records.errors import ToolMissingError, UnknownRunError
from records.run_directory import RunDirectory


@click.command()
@click.argument("names", nargs=-1, metavar="[RUN]...")
@click.option(
    "--out", metavar="FILE", type=Place(), help="Where to write it; default: build/report.html.",
)  # fmt: skip
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@json_option
def command(names: tuple[str, ...], out: Path | None, show: bool, as_json: bool) -> None:
    """Write one self-contained HTML page: verdicts, figures, tables, traces, findings.

    RUN is a run's id or its beginning, of the records or of `make demo`, or a path to one or to a
    directory of them; default: every sealed run here that is not synthetic. The page asks nothing
    of any network, and the same records give the same bytes. A synthetic run says so everywhere on
    its page, which is then build/demo/report.html.

    \b
    Example:
      kit report
      kit report --open
      kit report 20261130T115921Z --out smoke.html
    """
    here = home()
    if out is not None:
        require_outside_records(out, here)
        require_place(out, directory=False)
    with heartbeat(say, "reading the records"):
        directories = _sealed(here, names)
        found = [(read_run_in_batches(one, here.cache), one) for one in directories]
        if not names:
            found = [(run, one) for run, one in found if not run.started.synthetic]
        if not found:
            raise UnknownRunError(f"no sealed run in {here.data}", remedy="kit reproduce makes one")
        studied = {run.run_id: study_run(run, one) for run, one in found}
    runs = tuple(run for run, _ in found)
    synthetic = runs[0].started.synthetic
    with heartbeat(say, "computing claims and verdicts"):
        published = load_published(here.root)
        evaluation = Evaluation() if synthetic else evaluate_project(here.root, here.data)
        verdicts = published_verdicts(tuple(studied.values()), published)
    with heartbeat(say, "drawing"):
        figures, note = _figures(runs)
    if note:
        say(f"warning: {note}")
    report = build(
        Material(
            runs,
            studied,
            {run.run_id: one.path.absolute().parent for run, one in found},
            verdicts,
            figures,
            note,
            () if synthetic else read_findings(here.root),
            evaluation,
            here.root,
            here.data,
        )
    )
    from analysis.report.page import page  # the template engine is this verb's alone

    target = out or here.out / ("demo/report.html" if synthetic else "report.html")
    data = page(report)
    write_whole(target, data)
    if as_json:
        print_json({"file": str(target), "bytes": len(data), "runs": [run.run_id for run in runs]})
    else:
        say(f"written: {target} ({len(data) / 1000:.0f} kB)")
    if show:
        webbrowser.open(target.absolute().as_uri())


def _sealed(here: Home, names: Sequence[str]) -> list[RunDirectory]:
    """The runs that are named, of the records or of the demo's, which lie apart from them."""
    if not names:
        return list(sealed_here(here).values())
    try:
        return list(named_runs(here, names).values())
    except UnknownRunError:
        demo = replace(here, data=here.out / "demo" / "records")
        with suppress(UnknownRunError):
            return list(named_runs(demo, names).values())
        raise


def _figures(runs: Sequence[Run]) -> tuple[tuple[tuple[tuple[str, ...], Figure, bytes], ...], str]:
    """The figures of each stratum as SVG; or none, and why."""
    drawn = []
    for _, group in strata(sorted(runs, key=lambda run: run.run_id)):
        for figure in study_figures(group):
            try:
                svg = b"" if figure.absent else render(figure, "svg")
            except ToolMissingError as error:
                return (), f"No figures on this page: {error.message}. Try: {error.remedy}."
            drawn.append((tuple(run.run_id for run in group), figure, svg))
    return tuple(drawn), ""
