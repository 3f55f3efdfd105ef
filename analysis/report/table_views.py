"""Tables of a study as the page shows them: what is alike in all rows said once, numbers traced.

Invariant: no cell is lost. A column leaves the grid only where every row says the same in it, and
then it stands above the grid; the cells themselves are those of analysis/tables.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis import (
    conduct_tables,
    measure_tables,
    peer_table,
    processor_table,
    server_clock_table,
    study_tables,
    texts,
    thread_table,
)
from analysis.claiming.claim import where_defined
from analysis.report.model import Cell, Heading, TableView
from analysis.table import MISSING, Column, Table

FOLDED_FROM_ROWS = 40
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "decisions": conduct_tables.decisions_table,
    "boots": conduct_tables.boots_table,
    "by-boot": measure_tables.boot_metrics_table,
    "dispersion": measure_tables.dispersion_table,
    "latency": measure_tables.latency_table,
    "goodput": measure_tables.goodput_table,
    "texts": texts.texts_table,
    "calibration": conduct_tables.calibration_table,
    "pace": conduct_tables.pace_table,
    "processors": processor_table.processor_table,
    "busiest-thread": thread_table.thread_table,
    "void": conduct_tables.void_table,
    "definitions": measure_tables.definitions_table,
    "server-clock": server_clock_table.server_clock_table,
    "peer": peer_table.peer_table,
}
# Column -> the last word of the claim that prints the same number, by table.
_CLAIMS: dict[str, dict[str, str]] = {
    "boots": {
        "completed": "boots.completed",
        "failed": "boots.failed",
    },
    "dispersion": {
        "output, mean": "throughput.mean",
        "CV": "throughput.cv",
        "CV 95 % low": "throughput.cv-low",
        "CV 95 % high": "throughput.cv-high",
        "acceptance, mean": "acceptance.mean",
        "CV, acceptance": "acceptance.cv",
        "CV 95 % low, acceptance": "acceptance.cv-low",
        "CV 95 % high, acceptance": "acceptance.cv-high",
    },
    "texts": {
        "prompts": "texts.prompts",
        "answers": "texts.distinct",
    },
}
_QUANTITIES = {name: id_ for id_, name in measure_tables.GOODPUT_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Links:
    """How a table finds its traces. `row`: cells by column -> anchor. `claim`: id -> anchor, or ""
    where the claim has no value or its records are not those of the table."""

    row: Callable[[Mapping[str, str], str], str]
    claim: Callable[[str], str]
    study: str


def table_view(table: Table, anchor: str, links: Links, root: Path) -> TableView:
    """One table with its links."""
    shared = _shared(table)
    kept = [i for i, column in enumerate(table.columns) if column.name not in shared]
    function = _FUNCTIONS.get(table.name, study_tables.merged_tables)
    return TableView(
        anchor,
        table.title,
        table.notes,
        tuple(shared.items()),
        tuple(_heading(table.columns[i]) for i in kept),
        tuple(_row(table, row, kept, links) for row in table.rows),
        function.__name__,
        where_defined(function, root),
        len(table.rows) >= FOLDED_FROM_ROWS,
    )


def figure_data(table: Table, anchor: str) -> TableView:
    """What a figure was drawn from, without traces: the tables of the study have them."""
    rows = tuple(
        tuple(Cell(text, column.numeric) for text, column in zip(row, table.columns, strict=True))
        for row in table.rows
    )
    headings = tuple(map(_heading, table.columns))
    return TableView(anchor, table.title, table.notes, (), headings, rows, "", "", folded=True)


def _heading(column: Column) -> Heading:
    return Heading(column.name, column.unit, column.numeric)


def _shared(table: Table) -> dict[str, str]:
    """Words, not numbers, that are alike in at least two rows; the arm stays where it is."""
    if len(table.rows) < 2:
        return {}
    found = {}
    for column, cells in zip(table.columns, zip(*table.rows, strict=True), strict=True):
        words = not column.numeric and not column.several and column.name != "arm"
        if words and len(set(cells)) == 1:
            found[column.name] = cells[0]
    return found


def _row(table: Table, row: tuple[str, ...], kept: list[int], links: Links) -> tuple[Cell, ...]:
    named = {column.name: cell for column, cell in zip(table.columns, row, strict=True)}
    source = links.row(named, table.name)
    cells = []
    for i in kept:
        column, text = table.columns[i], row[i]
        number = (column.numeric or column.several) and text != MISSING
        claim = _claim(table.name, column.name, named, links.study) if number else ""
        anchor = links.claim(claim) if claim else ""
        cells.append(
            Cell(text, column.numeric, anchor or source if number else "", claim if anchor else "")
        )
    return tuple(cells)


def _claim(table: str, column: str, row: Mapping[str, str], study: str) -> str:
    """The id of the claim that prints this cell's number; "" where there is none."""
    if table == "goodput" and column == "requests meeting it":
        quantity = _QUANTITIES[row["quantity"]]
        return f"{study}.{row['arm']}.{row['window']}.meeting.{quantity}.{row['threshold']}ms"
    if table == "texts" and column == "same":
        arms = "-vs-".join(sorted((row["arm"], row["reference"])))
        return f"{study}.{arms}.{row['window']}.texts.same"
    last = _CLAIMS.get(table, {}).get(column, "")
    if not last:
        return ""
    where = [row[name] for name in ("arm", "window") if name in row]
    return ".".join([study, *where, last])
