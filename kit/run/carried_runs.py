"""What was carried here at once: one run, or a directory of runs as `harness.pyz pack` makes it.

Invariant: nothing is opened or followed; whether a directory is a run is told where it is taken in.
"""

from __future__ import annotations

import os
from pathlib import Path

from records.journal import EVENTS_NAME
from records.run_directory import RunDirectory, runs_in


def carried_runs(directory: Path) -> tuple[RunDirectory, ...]:
    """The run that `directory` is, or those in it that have a journal, in order of name.

    Where there is no journal anywhere: the directory itself, for the caller to refuse.
    """
    itself = RunDirectory(directory)
    if os.path.lexists(directory / EVENTS_NAME):
        return (itself,)
    return tuple(run for run in runs_in(directory) if os.path.lexists(run.events)) or (itself,)
