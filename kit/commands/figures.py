"""`kit figures`: what was measured, drawn, with the data beside each figure."""

from __future__ import annotations

import click

from analysis.figures import study_figures
from analysis.figures.files import write_figures
from analysis.figures.pooled import pooled_runs
from analysis.reading import sealed_runs
from analysis.streaming.large_run import read_run_in_batches
from kit.heartbeat import heartbeat
from kit.options import find_records, home, json_option
from kit.output import echo, print_json, print_table, say
from records.errors import UnknownRunError


@click.command()
@click.argument("names", nargs=-1, metavar="[RUN]...")
@json_option
def command(names: tuple[str, ...], as_json: bool) -> None:
    """Draw the figures of runs as PDF, SVG and PNG, each with its data as CSV beside it.

    RUN is a run's id or its beginning, or a path to one; default: every sealed run here that is not
    synthetic. Each run has a directory under build/figures, and so have several runs of one plan
    together, with what counts of each. The chain of a run is verified first.

    \b
    Example:
      kit figures
      kit figures 20261130T115921Z --json
    """
    here = home()
    with heartbeat(say, "reading the records"):
        directories = [find_records(here, name) for name in names] or list(sealed_runs(here.data))
        read = [(read_run_in_batches(one, here.cache), one) for one in directories]
        if not names:
            read = [(run, one) for run, one in read if not run.started.synthetic]
    if not read:
        raise UnknownRunError(f"no sealed run in {here.data}", remedy="kit reproduce makes one")
    drawn = []
    with heartbeat(say, "drawing"):
        studies = [(run.run_id, [run]) for run, _ in read] + pooled_runs(read)
        for name, runs in studies:
            part = "demo/figures" if runs[0].started.synthetic else "figures"
            directory = here.out / part / name
            figures = study_figures(runs)
            drawn.append((name, directory, figures, write_figures(figures, directory)))
    if as_json:
        print_json(
            [
                {
                    "study": name,
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
                for name, _, figures, written in drawn
            ]
        )
        return
    for name, directory, figures, _ in drawn:
        echo(name)
        print_table(("figure", "shows"), [(f.name, f.absent or f.title) for f in figures])
        say(f"written: {directory}")
