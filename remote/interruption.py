"""Turns SIGINT and SIGTERM into one exception, never in the middle of a record, never lost.

Invariant: while a `shield` is held the exception waits; it is raised when the shield ends. One that
Python had to swallow (raised in a finaliser, a weak reference's callback or a hook of os.fork) is
raised again, until it is on its way up.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from records.errors import InterruptedRunError

# How soon a swallowed exception is noticed. The clock runs after a stop signal alone.
_AGAIN_S = 0.25


def _silent() -> str:
    return ""


class Interruption:
    """The process's two stop signals; `install` once, in the main thread, `settle` at its end.

    `run_id`: what the message says to go on with. `told`: asked, when a signal comes, for a reason
    that somebody else knows.
    """

    def __init__(self, run_id: str = "RUN", told: Callable[[], str] = _silent) -> None:
        self._run_id = run_id
        self._told = told
        self._shields = 0
        self._signal = ""
        self._reason = ""

    def explain(self, reason: str) -> None:
        """Say beforehand why the next signal comes."""
        self._reason = reason

    def install(self) -> None:
        """Take over SIGINT and SIGTERM, and SIGALRM to look after them."""
        signal.signal(signal.SIGINT, self._handle)
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGALRM, self._look_again)

    def settle(self) -> None:
        """The work is over or has been given up: from now on a signal changes nothing."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._signal = self._signal or signal.Signals(number).name
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _AGAIN_S)
        self._raise_if_due()

    def _look_again(self, _number: int, _frame: FrameType | None) -> None:
        self._raise_if_due()

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Hold the exception back until the block is done."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        self._raise_if_due()

    def _raise_if_due(self) -> None:
        if not self._signal or self._shields or _is_on_its_way():
            return
        reason = self._reason or self._told()
        why = f"{reason}; " if reason else ""
        raise InterruptedRunError(
            f"{why}stopped by {self._signal}; what was measured is kept",
            remedy=f"kit reproduce --run {self._run_id}  (with the --host it was begun with)",
        )


def _is_on_its_way() -> bool:
    """Whether what runs now (a `finally`, an `__exit__`) runs because of the exception."""
    error = sys.exc_info()[1]
    while error is not None:
        if isinstance(error, InterruptedRunError):
            return True
        error = error.__context__
    return False
