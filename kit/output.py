"""What the user sees: progress and errors on stderr, results on stdout.

Invariant: stdout carries nothing but the result that was asked for, so that it can be piped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import click

from records.limits import printable


def say(line: str) -> None:
    """One line of progress."""
    click.echo(line, err=True)


def print_error(message: str, remedy: str) -> None:
    """A failure: its cause, and what to type next. Where stderr is full or gone, nothing."""
    with suppress(OSError):  # the exit code still tells
        click.echo(f"error: {message}", err=True)
        if remedy:
            click.echo(f"  try: {remedy}", err=True)


def print_json(value: Any) -> None:
    """A result for machines."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A result for people: columns as wide as their widest cell, which steers no terminal."""
    lines = [list(head), *([printable(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for number, line in enumerate(lines):
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
        if number == 0:
            click.echo("  ".join("-" * width for width in widths))
