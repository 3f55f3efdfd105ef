"""`kit minutes`."""

from __future__ import annotations

import click

from analysis.minutes import minutes
from kit.options import find_records, home, json_option
from kit.output import echo, print_json, print_table


@click.command()
@click.argument("run", default="")
@json_option
def command(run: str, as_json: bool) -> None:
    """What a run's time went to: binding, boots, windows; the share that was measured.

    RUN is a run of the records, or a run directory, of an unfinished run, too; the newest where
    none is named. On a host that is paid by the minute the share is what to raise.

    \b
    Example:
      kit minutes
      kit minutes 20261130T115921Z --json
    """
    directory = find_records(home(), run)
    found = minutes(directory.read())
    closed = directory.closed
    state = closed.WORD if closed else "" if directory.is_sealed else "unfinished"
    if as_json:
        print_json(
            {
                "run": directory.path.name,
                "state": state,
                "parts": [
                    {"what": part.what, "seconds": part.seconds, "share": part.share}
                    for part in found
                ],
            }
        )
        return
    echo(f"{directory.path.name}{f' ({state})' if state else ''}\n")
    rows = [
        (part.what, f"{part.seconds:.1f}", f"{100 * part.share:.1f}", part.less) for part in found
    ]
    total = sum(part.seconds for part in found)
    print_table(("part", "s", "%", "less by"), [*rows, ("all", f"{total:.1f}", "100.0", "")])
