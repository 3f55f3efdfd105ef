"""An array job: what the local tool hands to the tasks of a Slurm job, beside their jobs.

Invariant: a task finds everything that it is to do under its own number; all paths are the shared
storage's, all but `scratch`, which is of the node that it happens to run on.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlurmTask:
    """One block. `stop`: the file whose presence says that the run is not to go on."""

    job: str
    log: str
    stop: str


@dataclass(frozen=True, slots=True)
class SlurmArray:
    """`tasks` by number. `scratch`: candidates, variables of the node in them, the first that is a
    directory there. `notice_s`: how long before its limit Slurm sends SIGTERM.
    """

    tasks: dict[str, SlurmTask]
    scratch: tuple[str, ...]
    notice_s: int
