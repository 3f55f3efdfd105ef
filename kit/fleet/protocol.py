"""Where the blocks of a plan run, the same for hosts over SSH, a cluster and a cloud.

Invariant: a share is some of the plan's blocks and one run; what became of it is told once, when it
has ended, and its records are fetched by its run id. No call waits for a share to end.
"""

from __future__ import annotations

from typing import Protocol

from kit.run.campaign import Outcome
from kit.run.reproduce import Reproduced


class Fleet(Protocol):
    """Some machines that carry out one plan."""

    @property
    def period_s(self) -> float:
        """How long to wait between two polls."""
        ...

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs that this kit knows to be under way."""
        ...

    def submit(self) -> None:
        """Start every share, or go on with it. What cannot be started is told by `poll`."""
        ...

    def poll(self) -> tuple[Outcome, ...]:
        """The shares that have ended since the last call, after saying what is new of the rest."""
        ...

    def is_under_way(self) -> bool:
        """Whether a share has not ended yet."""
        ...

    def cancel(self) -> None:
        """Ask every share to mark its boot and end; `poll` tells when it has."""
        ...

    def fetch(self, outcome: Outcome) -> Reproduced:
        """Bring the records of a share that has ended home, verified."""
        ...
