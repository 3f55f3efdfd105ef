"""Lists of processors, there and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from records.cpu_list import parse_cpus, shown_cpus


@given(st.sets(st.integers(0, 300)))
def test_what_is_shown_reads_back(cpus: set[int]) -> None:
    assert parse_cpus(shown_cpus(cpus)) == tuple(sorted(cpus))


def test_neighbours_are_joined() -> None:
    assert shown_cpus([8, 0, 1, 3]) == "0-1,3,8"
