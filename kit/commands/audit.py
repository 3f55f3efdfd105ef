"""`kit audit`: hold records, tables and harness to account."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from audit.junit import as_junit
from audit.report import as_object, as_text, explanation, failure
from audit.runner import audit, explain
from audit.sarif import as_sarif
from kit.audit_cache import keep_keys, read_keys
from kit.heartbeat import heartbeat
from kit.options import home, json_option
from kit.output import echo, print_json, say
from records.errors import UnknownRunError

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="The records; default: records/data.",
)
@click.option(
    "--project",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=None,
    metavar="DIR",
    help="Audit another copy of the project with the checks and claims of this one.",
)
@click.option("--explain", "code", default="", metavar="CODE", help="Say what a code means.")
@click.option("--sarif", type=_FILE, metavar="FILE", help="Also write the report as SARIF 2.1.0.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Also write the report as JUnit XML.")
@click.option(
    "--incremental",
    is_flag=True,
    help="Verify all bytes, but do not decode again what this auditor found clean before.",
)
@json_option
def command(
    data: Path | None,
    project: Path | None,
    code: str,
    sarif: Path | None,
    junit: Path | None,
    incremental: bool,
    as_json: bool,
) -> None:
    """Check every record, table and claim; end with an exit code that names the class of error.

    \b
      50  records, lists, signatures or history are not what they were
      57  a run was not carried out as its plan demands
      58  tables, claims, findings or paper are not what the records give
      59  secrets, names, addresses, licences

    Works offline, without an engine; changes nothing. audit/CHECKS.md lists what is checked. What
    somebody else published is best audited with a copy of this kit that they did not give you.

    \b
    Example:
      kit audit
      kit audit --incremental
      kit audit --project ../their-clone
      kit audit --json
      kit audit --sarif build/audit.sarif --junit build/audit.xml
      kit audit --explain CHAIN01
    """
    if code:
        check, meaning = explain(code)
        echo(explanation(check, meaning), nl=False)
        return
    here = home()
    root = (project or here.root).absolute()
    records = data or (root / "records" / "data" if project else here.data)
    if not records.is_dir():
        what = "no such directory" if not records.exists() else "not a directory"
        raise UnknownRunError(f"{records}: {what}", remedy="kit audit --data DIR")
    known = read_keys(here.path) if incremental else frozenset()
    with heartbeat(say, "reading every record, making every table and claim again"):
        report = audit(root, records, trusted=known, processes=os.cpu_count() or 1)
    if incremental:
        keep_keys(here.path, known, report.clean)
    if as_json:
        print_json(as_object(report))
    else:
        echo(as_text(report), nl=False)
    if sarif:
        _write(sarif, json.dumps(as_sarif(report), indent=1, ensure_ascii=False) + "\n")
    if junit:
        _write(junit, as_junit(report))
    error = failure(report)
    if error:
        raise error


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="replace")
