"""`kit analyze`: tables from records."""

from __future__ import annotations

import click

from analysis.claiming.reading import study_run
from analysis.publish import studies, write_studies
from analysis.reading import sealed_runs
from analysis.streaming.large_run import read_run_in_batches
from analysis.study_tables import study_of_runs
from analysis.table import as_object
from kit.commands.study_text import shown_text
from kit.heartbeat import heartbeat
from kit.options import find_records, home, json_option
from kit.output import print_json, say
from records.errors import UnknownRunError
from records.limits import printable


@click.command()
@click.argument("names", nargs=-1, metavar="[RUN]...")
@click.option("--paper", is_flag=True, help="Write one run's tables to paper/tables, to commit.")
@json_option
def command(names: tuple[str, ...], paper: bool, as_json: bool) -> None:
    """Print the tables of runs, and write them as Markdown, CSV and LaTeX.

    RUN is a run's id or its beginning, or a path to one; default: every sealed run here that is not
    synthetic. The chain of each run is verified first. Runs of one plan, harness, engine and host
    are also pooled; those of one plan, whatever their hosts, are one study: what was carried out
    where, what counts, which hosts are apart. A large run is kept in .kit/cache, too, in a form
    that is faster to read again.

    \b
    Example:
      kit analyze
      kit analyze 20261130T115921Z --json
      kit analyze build/demo/records/20261130T120000Z-demo-0a1b2c
    """
    here = home()
    with heartbeat(say, "reading the records"):
        directories = [find_records(here, name) for name in names] or list(sealed_runs(here.data))
        read = [(read_run_in_batches(one, here.cache), one) for one in directories]
        if not names:
            read = [(run, one) for run, one in read if not run.started.synthetic]
        runs = [run for run, _ in read]
    if not runs:
        raise UnknownRunError(f"no sealed run in {here.data}", remedy="kit reproduce makes one")
    with heartbeat(say, "computing the tables"):
        result = studies(runs)
        if not paper and len(runs) > 1:
            result += study_of_runs([study_run(run, one) for run, one in read])
    synthetic = any(run.started.synthetic for run in runs)
    out = here.out / ("demo/tables" if synthetic else "tables")
    if paper:
        if synthetic:
            raise click.UsageError("--paper is for measured runs, and one of these is synthetic")
        # Pooled tables change with every new run, so they are not for committing.
        out = here.root / "paper" / "tables"
        result = [study for study in result if len(study.runs) == 1]
    written = write_studies(result, out)
    places = {study.name: out / study.name for study in result}
    if as_json:
        print_json(
            {
                "studies": [
                    {
                        "name": study.name,
                        "runs": list(study.runs),
                        "tables": [as_object(table) for table in study.tables],
                    }
                    for study in result
                ],
                "files": [str(path) for path in written],
            }
        )
        return
    for study in result:
        # Words of the engine's log stand in the tables; none of them may steer a terminal.
        for line in shown_text(study, places[study.name]).split("\n"):
            click.echo(printable(line))
    for directory in sorted({str(path.parent) for path in written}):
        say(f"written: {directory}")
