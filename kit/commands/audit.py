"""`kit audit`: hold records, tables and harness to account."""

from __future__ import annotations

from pathlib import Path

import click

from audit.report import as_object, as_text, explanation
from audit.runner import audit, explain
from kit.options import home, json_option
from kit.output import print_json
from records.errors import AuditFailedError, UnknownRunError


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="The records; default: records/data.",
)
@click.option("--explain", "code", default="", metavar="CODE", help="Say what a code means.")
@json_option
def command(data: Path | None, code: str, as_json: bool) -> None:
    """Check every record and every table; end with exit code 50 where one does not hold.

    Works offline, without an engine; changes nothing. audit/CHECKS.md lists what is checked.

    \b
    Example:
      kit audit
      kit audit --json
      kit audit --explain CHAIN01
    """
    if code:
        check, meaning = explain(code)
        click.echo(explanation(check, meaning), nl=False)
        return
    here = home()
    records = data or here.data
    if not records.is_dir():
        raise UnknownRunError(f"no records at {records}", remedy="name them with --data DIR")
    report = audit(here.root, records)
    if as_json:
        print_json(as_object(report))
    else:
        click.echo(as_text(report), nl=False)
    if report.errors:
        raise AuditFailedError(
            f"the audit found {report.errors} errors in {report.data}",
            remedy="each finding above names its remedy",
        )
