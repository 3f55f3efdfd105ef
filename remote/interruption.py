"""Turns SIGINT and SIGTERM into one exception, never in the middle of a record.

Invariant: while a `shield` is held the exception waits; it is raised once, when the shield ends.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from records.errors import InterruptedRunError


class Interruption:
    """The process's two stop signals; `install` once, in the main thread.

    `run_id`: what the message says to go on with.
    """

    def __init__(self, run_id: str = "RUN") -> None:
        self._run_id = run_id
        self._shields = 0
        self._pending = ""
        self._reason = ""

    def explain(self, reason: str) -> None:
        """Say beforehand why the next signal comes."""
        self._reason = reason

    def install(self) -> None:
        """Take over SIGINT and SIGTERM."""
        signal.signal(signal.SIGINT, self._handle)
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._pending = signal.Signals(number).name
        if self._shields == 0:
            self._raise()

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Hold the exception back until the block is done."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._pending and self._shields == 0:
            self._raise()

    def _raise(self) -> None:
        name, self._pending = self._pending, ""
        why = f"{self._reason}; " if self._reason else ""
        raise InterruptedRunError(
            f"{why}stopped by {name}; what was measured is kept",
            remedy=f"kit reproduce --run {self._run_id}  (with the --host it was begun with)",
        )
