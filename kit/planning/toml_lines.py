"""Where each key of a TOML document stands, which tomllib does not tell.

Invariant: only called on documents that tomllib has accepted; a path without a line of its own
(inside an inline table, inside an array) has the line of the nearest key around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_KEY_PART = re.compile(r"""[ \t]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))[ \t]*""")
_LAST_INDEX = re.compile(r"\[\d+\]$")


def key_lines(text: str) -> dict[str, int]:
    """Map each path (`$.arms[0].id`) to its line, counted from 1."""
    lines: dict[str, int] = {"$": 1}
    counts: dict[str, int] = {}
    table = "$"
    position = counted = 0
    line = 1
    while position < len(text):
        start = text[position]
        if start in " \t\r\n":
            position += 1
            continue
        line += text.count("\n", counted, position)  # from the last key on, not from the start
        counted = position
        if start == "#":
            position = _line_end(text, position)
        elif start == "[":
            is_array = text.startswith("[[", position)
            parts, position = _dotted(text, position + (2 if is_array else 1))
            table = _table_path(parts, counts, is_array)
            for around in paths_around(table):  # also the array, and tables made on the way
                lines.setdefault(around, line)
            lines[table] = line
            position = _line_end(text, position)
        else:
            parts, position = _dotted(text, position)
            path = table
            for part in parts:
                path = f"{path}.{part}"
                lines.setdefault(path, line)
            position = _value_end(text, position)
    return lines


def line_of_most(text: str, characters: str) -> int:
    """The first line that holds the most of these characters, where nothing better is known."""
    wanted = set(characters)
    counts = [sum(char in wanted for char in line) for line in text.split("\n")]
    return counts.index(max(counts)) + 1


def paths_around(path: str) -> Iterator[str]:
    """`path`, then each path around it, out to the document's own."""
    while path:
        yield path
        index = _LAST_INDEX.search(path)
        path = path[: index.start()] if index else path.rpartition(".")[0]


def _dotted(text: str, position: int) -> tuple[list[str], int]:
    parts = []
    while match := _KEY_PART.match(text, position):
        parts.append(next(group for group in match.groups() if group is not None))
        position = match.end()
        if not text.startswith(".", position):
            break
        position += 1
    return parts, position


def _table_path(parts: list[str], counts: dict[str, int], is_array: bool) -> str:
    """The path a header names; a part that is an array of tables means its last element."""
    path = "$"
    for i, part in enumerate(parts):
        path = f"{path}.{part}"
        if is_array and i == len(parts) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = f"{path}[{counts[path]}]"
    return path


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _value_end(text: str, position: int) -> int:
    """Past the line that ends the value beginning here: strings and brackets may span lines."""
    depth = 0
    while position < len(text):
        char = text[position]
        if char == "\n" and depth == 0:
            return position + 1
        if char == "#":
            position = _line_end(text, position) - 1
            continue
        if char in "\"'":
            position = _string_end(text, position)
            continue
        if char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        position += 1
    return position


def _string_end(text: str, position: int) -> int:
    quote = text[position]
    mark = quote * 3 if text.startswith(quote * 3, position) else quote
    position += len(mark)
    while position < len(text) and not text.startswith(mark, position):
        position += 2 if quote == '"' and text[position] == "\\" else 1
    position += len(mark)
    # A multi-line string may end in up to two quotes of its own (TOML 1.0, String).
    while len(mark) == 3 and position < len(text) and text[position] == quote:
        position += 1
    return position
