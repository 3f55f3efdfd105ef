"""A figure's table read back as rows of values, and grouped for panels and lines.

Invariant: numbers are those of the table's cells at the precision shown there; a missing one is
None and is never drawn as zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from analysis.plan_order import merged
from analysis.table import Table, as_object

Row = dict[str, Any]


def rows_of(table: Table) -> list[Row]:
    """Each row by column key (analysis.table.Column.key)."""
    rows: list[Row] = as_object(table)["rows"]
    return rows


def grouped(rows: Iterable[Row], key: str) -> dict[Any, list[Row]]:
    """Rows by the value under one key, groups in order of first mention."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def by_window(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by window, windows in the plan's order, as far as the rows of each arm tell it."""
    found = grouped(rows, "window")
    return {window: found[window] for window in _in_order(rows, "arm", "window")}


def arms_of(rows: Sequence[Row]) -> list[str]:
    """The arms in the plan's order, as far as the rows of each window tell it."""
    return _in_order(rows, "window", "arm")


def _in_order(rows: Sequence[Row], of: str, key: str) -> list[str]:
    """Where an arm lacks a window, or a window an arm, the others tell where it belongs."""
    parts = grouped(rows, of).values()
    return merged(list(dict.fromkeys(row[key] for row in part)) for part in parts)


def pairs(rows: Sequence[Row], x: str, y: str) -> tuple[list[float], list[float]]:
    """The x and y of the rows that have both."""
    both = [(row[x], row[y]) for row in rows if row[x] is not None and row[y] is not None]
    return [one for one, _ in both], [two for _, two in both]
