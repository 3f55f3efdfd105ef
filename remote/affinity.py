"""Which processors a child process may use, so that client and engine do not share any.

Invariant: the harness's own affinity is as before once the block has ended.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from records.errors import HostUnfitError


@contextmanager
def on_cpus(cpus: Sequence[int]) -> Iterator[None]:
    """Children started in the block run on `cpus`; empty leaves the choice to the kernel.

    HostUnfitError where the host has none of these processors.
    """
    if not cpus:
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        raise HostUnfitError(f"processors {list(cpus)}: {error}", remedy="nproc --all") from error
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
