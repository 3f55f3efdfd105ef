"""`kit figures`: what was measured, drawn, with the data beside each figure."""

from __future__ import annotations

import click

from analysis.figures import study_figures
from analysis.figures.files import write_figures
from analysis.reading import sealed_runs
from analysis.streaming.large_run import read_run_in_batches
from kit.heartbeat import heartbeat
from kit.options import find_records, home, json_option
from kit.output import print_json, print_table, say
from records.errors import UnknownRunError


@click.command()
@click.argument("names", nargs=-1, metavar="[RUN]...")
@json_option
def command(names: tuple[str, ...], as_json: bool) -> None:
    """Draw the figures of runs as PDF, SVG and PNG, each with its data as CSV beside it.

    RUN is a run's id or its beginning, or a path to one; default: every sealed run here that is not
    synthetic. Each run has a directory under build/figures. The chain of a run is verified first.

    \b
    Example:
      kit figures
      kit figures 20261130T115921Z --json
    """
    here = home()
    with heartbeat(say, "reading the records"):
        directories = [find_records(here, name) for name in names] or list(sealed_runs(here.data))
        runs = [read_run_in_batches(directory, here.cache) for directory in directories]
        if not names:
            runs = [run for run in runs if not run.started.synthetic]
    if not runs:
        raise UnknownRunError(f"no sealed run in {here.data}", remedy="kit reproduce makes one")
    drawn = []
    with heartbeat(say, "drawing"):
        for run in runs:
            part = "demo/figures" if run.started.synthetic else "figures"
            directory = here.out / part / run.run_id
            figures = study_figures([run])
            written = write_figures(figures, directory)
            drawn.append((run.run_id, directory, figures, written))
    if as_json:
        print_json(
            [
                {
                    "run": run_id,
                    "figures": [
                        {
                            "name": figure.name,
                            "title": figure.title,
                            "caption": figure.caption,
                            "alt": figure.alt,
                            "absent": figure.absent,
                            "files": [str(path) for path in written if path.stem == figure.name],
                        }
                        for figure in figures
                    ],
                }
                for run_id, _, figures, written in drawn
            ]
        )
        return
    for run_id, directory, figures, _ in drawn:
        click.echo(run_id)
        print_table(("figure", "shows"), [(f.name, f.absent or f.title) for f in figures])
        say(f"written: {directory}")
