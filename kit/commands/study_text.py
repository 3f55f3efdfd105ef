"""The tables of a study as text for a terminal; no verb of its own.

Invariant: nothing is left out but tables without a row, and the definitions of other tools, which
have a verb of their own and would bury the rest.
"""

from __future__ import annotations

from tabulate import tabulate

from analysis.publish import Study
from analysis.table import Table

_NOT_SHOWN = ("definitions",)


def study_text(study: Study) -> str:
    """Name, runs, and every table worth a look."""
    shown = (t for t in study.tables if t.name not in _NOT_SHOWN and t.rows)
    return f"# {study.name}: {', '.join(study.runs)}\n\n" + "\n".join(map(_table_text, shown))


def _table_text(table: Table) -> str:
    head = [column.heading for column in table.columns]
    align = ["right" if column.numeric else "left" for column in table.columns]
    body = tabulate(table.rows, head, tablefmt="simple", disable_numparse=True, colalign=align)
    notes = "".join(f"  {note}\n" for note in table.notes)
    return f"{table.title}\n\n{body}\n{notes}"
