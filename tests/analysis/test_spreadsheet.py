"""Cells of CSV: none begins a formula, and what was done to one can be undone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.spreadsheet import inert
from records.limits import printable

BEGINNINGS = "=+-@\uff1d\uff0b\uff0d\uff20"


def undone(cell: str) -> str:
    """As the page of the tables tells readers to."""
    return ";".join(part.removeprefix("'") for part in cell.split(";"))


@given(st.text(alphabet=st.sampled_from(BEGINNINGS + "'; \t\r\n\x00a1,\"\u2009")))
def test_no_part_begins_a_formula_and_nothing_is_lost(text: str) -> None:
    cell = inert(text)
    assert not re.search(rf"(?:^|;)\s*[{re.escape(BEGINNINGS)}]", cell)
    assert printable(cell) == cell
    assert undone(cell) == printable(text)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("stop", "stop"),
        ("", ""),
        ("jit: 1 kernels; -", "jit: 1 kernels;' -"),
        ("=1+1", "'=1+1"),
        (" @SUM(A1)", "' @SUM(A1)"),
        ("x;=1+1", "x;'=1+1"),
        ("'quoted'", "''quoted'"),
        ("\t=1", "\\x09=1"),
        ("a=b-c", "a=b-c"),
    ],
)
def test_by_example(text: str, cell: str) -> None:
    assert inert(text) == cell
