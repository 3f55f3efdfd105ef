"""Which blocks of a plan are still to be done on a cluster, and by which runs.

Invariant: pure; a block whose newest run is sealed is not begun again while another block of the
same request is not done, so that the same command again completes a study and never doubles it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from records.job import Job
from records.plan import Plan


@dataclass(frozen=True, slots=True)
class Part:
    """One block. `old`: its run to go on with, or None to begin one; `sealed`: nothing is left."""

    block: int
    old: Job | None = None
    sealed: bool = False


def parts(
    plan: Plan, blocks: Sequence[int], jobs: Iterable[Job], is_sealed: Callable[[Job], bool]
) -> tuple[Part, ...]:
    """Each of the blocks, from the jobs that are there, oldest first."""
    newest = {job.blocks: job for job in jobs if job.plan.digest == plan.digest}
    found = []
    for block in blocks:
        old = newest.get((block,))
        found.append(Part(block, old, old is not None and is_sealed(old)))
    if all(part.sealed for part in found):
        return tuple(Part(part.block) for part in found)
    return tuple(found)
