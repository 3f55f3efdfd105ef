"""Read a growing log file in increments.

Invariant: every complete line is given out exactly once, in order, with its line number; a line
still being written stays unread until its newline is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Increment:
    """New complete lines: their text, and the number of the first of them."""

    first_number: int
    text: str


class LogTail:
    """The position in one log file. The file may not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset_bytes = 0
        self._next_number = 1

    def read(self) -> Increment:
        """The complete lines since the last call; empty text if there are none."""
        first = self._next_number
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset_bytes)
                data = file.read()
        except FileNotFoundError:
            return Increment(first, "")
        complete = data[: data.rfind(b"\n") + 1]
        self._offset_bytes += len(complete)
        self._next_number += complete.count(b"\n")
        return Increment(first, complete.decode("utf-8", errors="replace"))
