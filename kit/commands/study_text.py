"""The tables of a study as text: in full, or as a summary that fits a terminal; no verb of its own.

Invariant: what the summary leaves out stands in the files that it names; the full text leaves out
nothing but tables without a row and the definitions of other tools, which have a verb of their own.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from tabulate import tabulate

from analysis.not_begun import tells
from analysis.publish import Study
from analysis.table import Table
from records.schema import RunClosed

WIDTH = 100
_NOT_SHOWN = ("definitions",)
_REASON_WIDTH = 40
_ROWS = 20
_LATENCY = ("arm", "window", "quantity", "unit", "requests", "p50", "p95")
_SPREAD = {
    "arm": "arm",
    "window": "window",
    "boots": "boots",
    "output, mean (tok/s)": "tok/s",
    "CV (%)": "CV %",
    "CV 95 % low (%)": "low",
    "CV 95 % high (%)": "high",
    "acceptance, mean (tok/step)": "tok/step",
    "CV, acceptance (%)": "CV %",
}


def study_text(study: Study) -> str:
    """Name, runs, and every table worth a look."""
    said = _closed(study)
    shown = (t for t in study.tables if t.name not in _NOT_SHOWN and t.rows)
    return f"{_heading(study)}\n\n" + "\n".join(_table_text(table, said) for table in shown)


def shown_text(study: Study, files: Path) -> str:
    """The summary where a person reads it on a terminal, otherwise everything."""
    return study_summary(study, files) if sys.stdout.isatty() else study_text(study)


def study_summary(study: Study, files: Path) -> str:
    """The same in at most WIDTH columns. `files`: the directory that holds the whole tables."""
    tables = {table.name: table for table in study.tables}
    if "dispersion" not in tables:
        return _merged_summary(study, files)
    mark = " (SYNTHETIC)" if tables["dispersion"].title.endswith(" (SYNTHETIC)") else ""
    spread = _columns(tables["dispersion"], tuple(_SPREAD))
    parts = [
        (tables["decisions"].title, _decisions(tables["decisions"])),
        (tables["boots"].title, _boots(tables["boots"])),
        (
            f"Throughput and acceptance, mean over boots, with the interval of the first CV{mark}",
            _grid(tuple(_SPREAD.values()), spread),
        ),
        (tables["latency"].title, _grid(_LATENCY, _columns(tables["latency"], _LATENCY))),
        *_texts(tables["texts"]),
        (tables["void"].title, _void(tables["void"], one_run=len(study.runs) == 1)),
    ]
    body = "\n\n".join(f"{title}\n\n{text}" for title, text in parts)
    return (
        f"{_heading(study)}\n\n{body}\n\nall tables, with what their columns mean: {files}/*.md\n"
    )


def _merged_summary(study: Study, files: Path) -> str:
    """The tables of several runs as one study, the first rows of each."""
    parts = []
    for table in study.tables:
        text = _grid(_headings(table), table.rows[:_ROWS])
        if len(table.rows) > _ROWS:
            text = f"{text}\n… and {len(table.rows) - _ROWS} more rows"
        parts.append(f"{table.title}\n\n{text}")
    notes = [note for table in study.tables if table.name == "study" for note in table.notes]
    strata = "\n".join(note for note in notes if note.startswith("Stratum "))
    body = "\n\n".join([strata, *parts])
    return f"{_heading(study)}\n\n{body}\n\nall rows, with what they mean: {files}/*.md\n"


def _heading(study: Study) -> str:
    runs = ", ".join(study.runs) if len(study.runs) <= _ROWS else f"{len(study.runs)} runs"
    head = f"# {study.name}" if runs == study.name else f"# {study.name}: {runs}"
    return "\n\n".join([head, *_closed(study)])


def _closed(study: Study) -> list[str]:
    """What the heading says once of runs that were closed; in the files each table says it."""
    notes = study.tables[0].notes if study.tables else ()
    return [note for note in notes if RunClosed.WORD in note and note.startswith("Run ")]


def _table_text(table: Table, said: Sequence[str]) -> str:
    head = [column.heading for column in table.columns]
    align = ["right" if column.numeric else "left" for column in table.columns]
    body = tabulate(table.rows, head, tablefmt="simple", disable_numparse=True, colalign=align)
    notes = "".join(f"  {note}\n" for note in table.notes if note not in said)
    return f"{table.title}\n\n{body}\n{notes}"


def _headings(table: Table) -> tuple[str, ...]:
    return tuple(column.heading for column in table.columns)


def _columns(table: Table, wanted: Sequence[str]) -> list[tuple[str, ...]]:
    places = [_headings(table).index(name) for name in wanted]
    return [tuple(row[i] for i in places) for row in table.rows]


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Two blanks between columns, each as wide as its widest cell: tabulate pads its heads more."""
    if not rows:
        return "none"
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _decisions(table: Table) -> str:
    """One row a decision, one column an arm; several grids below each other where they are many."""
    blocks: list[list[tuple[str, ...]]] = [[]]
    for row in table.rows:
        if blocks[-1] and _width(_transposed(table, [*blocks[-1], row])) > WIDTH:
            blocks.append([])
        blocks[-1].append(row)
    return "\n\n".join(_transposed(table, block) for block in blocks)


def _transposed(table: Table, rows: Sequence[tuple[str, ...]]) -> str:
    names = _headings(table)
    lines = [(name, *cells) for name, *cells in zip(names, *rows, strict=True)]
    return _grid(lines[0], lines[1:])


def _boots(table: Table) -> str:
    """With what was not begun below, since no row tells of it."""
    notes = [textwrap.fill(note, WIDTH) for note in table.notes if tells(note)]
    return "\n\n".join([_grid(_headings(table), table.rows), *notes])


def _texts(table: Table) -> Iterator[tuple[str, str]]:
    """Nothing where a plan has no window with fixed prompts."""
    if table.rows:
        yield table.title, _grid(_headings(table), table.rows)


def _void(table: Table, *, one_run: bool) -> str:
    first = 1 if one_run else 0
    rows = [list(_broken(row, first)) for row in table.rows]
    if not rows:
        return "none"
    return tabulate(rows, _headings(table)[first:], tablefmt="simple", disable_numparse=True)


def _broken(row: tuple[str, ...], first: int) -> Iterator[str]:
    yield from row[first:-1]
    line, lines = "", []
    for word in row[-1].split():
        if line and len(line) + len(word) >= _REASON_WIDTH:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    yield "\n".join([*lines, line])


def _width(text: str) -> int:
    return max(map(len, text.splitlines()))
