"""Stop signals taken over for a test, and given back."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from remote.interruption import Interruption

TAKEN = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


@contextmanager
def settled(interruption: Interruption) -> Iterator[Interruption]:
    """Install it for the block; afterwards its clock stands and the handlers are the old ones."""
    before = {number: signal.getsignal(number) for number in TAKEN}
    interruption.install()
    try:
        yield interruption
    finally:
        interruption.settle()
        for number, handler in before.items():
            signal.signal(number, handler)
