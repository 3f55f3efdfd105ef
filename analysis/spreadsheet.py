"""Text for a cell of CSV, which a spreadsheet shows and never runs.

Invariant: nothing is lost but control characters, which are shown by their codes: an apostrophe
stands where one was put, and only there.
"""

from __future__ import annotations

import re

from records.limits import printable

# What begins a formula. Sources: OWASP "CSV Injection", CWE-1236. Their tab and line ends are shown
# by codes here; the full-width forms are read as the plain ones. A spreadsheet of a country that
# writes decimal commas takes ";" for the end of a cell. An apostrophe that was there gets another.
_BEGINS = re.compile(r"(?:^|(?<=;))(?=\s*['=+\-@＝＋－＠])")  # noqa: RUF001


def inert(text: str) -> str:
    """The text with an apostrophe before each part that would begin a formula.

    Parts end at ";". To undo it, take one apostrophe from the beginning of each.
    """
    return _BEGINS.sub("'", printable(text))
