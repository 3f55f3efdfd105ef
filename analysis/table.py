"""A table of text cells, and its one form each in Markdown, CSV and LaTeX.

Invariant: the bytes depend on the cells alone: no dates, no locale, fixed rounding where numbers
become text, line feeds for line ends. Cells carry words of engines and hosts: in no form do they
steer a terminal, open a tag, or become a formula.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.spreadsheet import inert
from records.limits import printable

MISSING = "-"

# Source: the ten special characters of LaTeX ("LaTeX2e: An unofficial reference manual", 2.1).
TEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    # Not special, but other characters in the fonts that LaTeX sets by default (OT1).
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name, its unit ("" for none), and whether its cells are numbers.

    `several`: a cell holds numbers with spaces between.
    """

    name: str
    unit: str = ""
    numeric: bool = True
    several: bool = False

    @property
    def heading(self) -> str:
        """Name and unit in one."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    @property
    def key(self) -> str:
        """The heading for machines: snake case, the unit at its end."""
        text = self.heading.lower().replace("%", " percent ").replace("/", " per ")
        return re.sub(r"[^a-z0-9]+", "_", text).strip("_")


@dataclass(frozen=True, slots=True)
class Table:
    """`name` is the file's stem; `notes` say what a reader must know to read it."""

    name: str
    title: str
    notes: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row of {len(row)} cells: {row}")


def words(*names: str) -> tuple[Column, ...]:
    """Columns of text."""
    return tuple(Column(name, numeric=False) for name in names)


def number(value: float | None, digits: int) -> str:
    """Fixed-point text with `digits` decimals; MISSING for None and what is not finite."""
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{value:.{digits}f}"
    # A tiny negative value must not print as -0.00.
    return text.lstrip("-") if float(text) == 0 else text


def markdown(table: Table) -> str:
    """A heading, the table, the notes."""
    cells = [[_md(c.heading) for c in table.columns], *[[_md(c) for c in r] for r in table.rows]]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(table.columns))]
    aligned = [
        "| "
        + " | ".join(_pad(c, w, col) for c, w, col in zip(row, widths, table.columns, strict=True))
        + " |"
        for row in cells
    ]
    rule = [
        ("-" * (w - 1) + ":") if c.numeric else "-" * w
        for w, c in zip(widths, table.columns, strict=True)
    ]
    aligned.insert(1, "| " + " | ".join(rule) + " |")
    notes = [f"- {_md_text(note)}" for note in table.notes]
    none = () if table.rows else ("", "None.")
    parts = [f"## {_md_text(table.title)}", "", *aligned, *none, *(["", *notes] if notes else [])]
    return "\n".join(parts) + "\n"


def as_csv(table: Table) -> str:
    """RFC 4180 but for line feeds; missing numbers are empty fields.

    Text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([column.heading for column in table.columns])
    for row in table.rows:
        writer.writerow(
            [_csv(cell, column) for cell, column in zip(row, table.columns, strict=True)]
        )
    return buffer.getvalue()


def latex(table: Table) -> str:
    """A tabular in booktabs rules, to be input inside a table environment."""
    spec = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        f"% {_one_line(table.title)}",
        rf"\begin{{tabular}}{{{spec}}}",
        r"\toprule",
        _tex_row([column.heading for column in table.columns]),
        r"\midrule",
        *[_tex_row(row) for row in table.rows],
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def as_object(table: Table) -> dict[str, Any]:
    """The table as plain values: numbers as numbers at the precision shown, missing ones null."""
    return {
        "name": table.name,
        "title": table.title,
        "notes": list(table.notes),
        "columns": [{"key": c.key, "name": c.name, "unit": c.unit} for c in table.columns],
        "rows": [
            {c.key: _value(cell, c) for c, cell in zip(table.columns, row, strict=True)}
            for row in table.rows
        ],
    }


def _value(cell: str, column: Column) -> Any:
    if column.several:
        return [] if cell == MISSING else [float(part) for part in cell.split()]
    if not column.numeric:
        return cell
    if cell == MISSING:
        return None
    return float(cell) if "." in cell else int(cell)


RENDERERS: tuple[tuple[str, Callable[[Table], str]], ...] = (
    ("md", markdown),
    ("csv", as_csv),
    ("tex", latex),
)


def _tex_row(cells: Sequence[str]) -> str:
    escaped = ("".join(TEX_SPECIAL.get(ch, ch) for ch in _one_line(cell)) for cell in cells)
    return " & ".join(escaped) + r" \\"


def _md(cell: str) -> str:
    return _md_text(cell).replace("|", "\\|")


def _md_text(text: str) -> str:
    return _one_line(text).replace("<", "\\<")


def _csv(cell: str, column: Column) -> str:
    if cell == MISSING:
        return ""
    text = _one_line(cell)
    return text if column.numeric else inert(text)


def _one_line(text: str) -> str:
    return printable(text.replace("\n", " "))


def _pad(cell: str, width: int, column: Column) -> str:
    return cell.rjust(width) if column.numeric else cell.ljust(width)
