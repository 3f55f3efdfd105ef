"""The first line that differs is told, and none only where the bytes are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.difference import first_difference

TEXTS = st.lists(st.sampled_from([b"a", b"b", b"", b"<end of file>", b"\xff"])).map(b"\n".join)


@pytest.mark.parametrize(
    ("got", "want", "told"),
    [
        (b"a\nb\n", b"a\nc\n", (2, "b", "c")),
        (b"a\n", b"a\nb\n", (2, "", "b")),
        (b"a\nb", b"a", (2, "b", "<end of file>")),
        (b"a", b"a\n<end of file>", (2, "<end of file>", "<end of file>")),
        (b"\xff\n", b"a\n", (1, "\ufffd", "a")),
        (b"a\n", b"a\n", (0, "", "")),
    ],
)
def test_the_first_line_that_differs(got: bytes, want: bytes, told: tuple[int, str, str]) -> None:
    assert first_difference(got, want) == told


@given(TEXTS, TEXTS)
def test_none_only_where_nothing_differs(got: bytes, want: bytes) -> None:
    line, _, _ = first_difference(got, want)
    assert (line == 0) == (got == want)
    assert got.split(b"\n")[: max(line - 1, 0)] == want.split(b"\n")[: max(line - 1, 0)]
