"""What the user sees: progress and errors on stderr, results on stdout.

Invariant: stdout carries nothing but the result that was asked for, so that it can be piped; no
text of a record, a host or an engine steers the terminal, whichever verb prints it.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import click

from records.limits import printable

_GAP = "  "
# Narrower than so many characters a last column is harder to read wrapped than over the edge.
_LEAST = 20
# What JSON leaves as it is in its strings, and what may steer: controls, format characters, other
# line ends, halves of surrogates.
_STEERS = ("Cc", "Cf", "Cs", "Zl", "Zp")


def say(line: str) -> None:
    """One line of progress."""
    click.echo(plain(line), err=True)


def echo(text: object = "", *, nl: bool = True) -> None:
    """A result for people, or a part of one. `nl`: with a line end after it."""
    click.echo(plain(str(text)), nl=nl)


def print_error(message: str, remedy: str) -> None:
    """A failure: its cause, and what to type next. Where stderr is full or gone, nothing."""
    with suppress(OSError):  # the exit code still tells
        click.echo(plain(f"error: {message}"), err=True)
        if remedy:
            click.echo(plain(f"  try: {remedy}"), err=True)


def print_json(value: Any) -> None:
    """A result for machines."""
    click.echo(json_text(value))


def json_text(value: Any) -> str:
    """JSON for machines, which people may see on a terminal, too."""
    return inert_json(json.dumps(value, indent=2, ensure_ascii=False))


def inert_json(text: str) -> str:
    """The same JSON, what steers a terminal in its escapes: RFC 8259, section 7."""
    return "\n".join(
        line if line.isprintable() else "".join(map(_escaped, line)) for line in text.split("\n")
    )


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1] if unicodedata.category(char) in _STEERS else char


def plain(text: str) -> str:
    """A text as a terminal may be given it: its lines and tabs as they are, else `printable`."""
    return "\n".join(
        line if line.isprintable() else "\t".join(map(printable, line.split("\t")))
        for line in text.split("\n")
    )


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A result for people; on a terminal its last column wraps."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    for line in table_lines(head, rows, width):
        echo(line)


def table_lines(
    head: Sequence[str], rows: Iterable[Sequence[object]], width: int = 0
) -> Iterator[str]:
    """Columns as wide as their widest cell, which steers no terminal.

    `width`: of the terminal; what the last column has beyond it goes on in the lines below. 0, or
    too little left for words: nothing wraps.
    """
    lines = [list(head), *([printable(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    before = sum(widths[:-1]) + len(_GAP) * (len(head) - 1)
    if width - before >= _LEAST:
        widths[-1] = min(widths[-1], width - before)
    for number, line in enumerate(lines):
        cells = [cell.ljust(wide) for cell, wide in zip(line[:-1], widths, strict=False)]
        fits = len(line[-1]) <= widths[-1]
        first, *more = [line[-1]] if fits else textwrap.wrap(line[-1], widths[-1]) or [""]
        yield _GAP.join([*cells, first]).rstrip()
        yield from (" " * before + part for part in more)
        if number == 0:
            yield _GAP.join("-" * wide for wide in widths)
