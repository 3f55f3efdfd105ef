"""Lists of processors, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.cpu_list import parse_cpus, shown_cpus
from records.errors import PlanError


@given(st.sets(st.integers(0, 300)))
def test_what_is_shown_reads_back(cpus: set[int]) -> None:
    assert parse_cpus(shown_cpus(cpus)) == tuple(sorted(cpus))


def test_neighbours_are_joined() -> None:
    assert shown_cpus([8, 0, 1, 3]) == "0-1,3,8"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0-99999999999", "up to 65535"),
        ("65536", "up to 65535"),
        ("9" * 5000, "up to 65535"),
        ("3-0", "3-0 descends"),
        ("0-3,", "not a list of numbers"),
    ],
)
def test_what_no_host_has_is_refused(text: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        parse_cpus(text)


def test_the_largest_number_is_taken() -> None:
    assert parse_cpus("65534-65535,007") == (7, 65534, 65535)
