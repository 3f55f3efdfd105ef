"""The first line in which a file is not as it should be, for whoever looks for it there."""

from __future__ import annotations

from itertools import zip_longest


def first_difference(got: bytes, want: bytes) -> tuple[int, str, str]:
    """Its number, from 1, as it is and as it should be; (0, "", "") where both are the same."""
    for number, (have, need) in enumerate(zip_longest(got.split(b"\n"), want.split(b"\n")), 1):
        if have != need:
            return number, _shown(have), _shown(need)
    return 0, "", ""


def _shown(line: bytes | None) -> str:
    return "<end of file>" if line is None else line.decode("utf-8", "replace")
