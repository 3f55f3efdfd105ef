"""Say that something long is still going on, from beside it.

Invariant: nothing is said of what ends within the first interval.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_EVERY_S = 20.0


@contextmanager
def heartbeat(
    say: Callable[[str], None], what: str, first_s: float = 2.0, every_s: float = _EVERY_S
) -> Iterator[None]:
    """While the block runs: `what` after `first_s`, then how long it has taken every `every_s`."""
    ended = threading.Event()

    def beat() -> None:
        begun, wait_s, line = time.monotonic(), first_s, f"{what} …"
        while not ended.wait(wait_s):
            say(line)
            wait_s = every_s
            line = f"{what}: still at it, {time.monotonic() - begun + every_s:.0f} s"

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
