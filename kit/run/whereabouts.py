"""What this machine knows of a run besides its records: if it goes on, how far it was seen.

Invariant: nothing is asked of a host; what was seen of a run while it grew is a witness against
records that hold less.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kit.home import Home
from kit.hosts.local import LocalHost
from kit.run.launch import is_under_way
from records.errors import ClosedRunError, NotAPrefixError, RunBusyError
from records.host_lock import holder, lock_path
from records.run_directory import RunDirectory

# Below the kit's own directory: the copies of other hosts' runs, one directory each.
_COPIES = ("hosts", "sky")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run was begun or followed: `name` for people, `home` as it stands on this machine."""

    name: str
    home: Home


def places(home: Home, run_id: str) -> Iterator[Place]:
    """The places that know a job or a journal of this run."""
    found = [Place("this machine", home)]
    for folder in _COPIES:
        above = home.path / folder
        below = sorted(above.iterdir()) if above.is_dir() else ()
        found += [Place(f"host {path.name}", replace(home, path=path)) for path in below]
    for place in found:
        if place.home.run(run_id).exists() or place.home.job(run_id).exists():
            yield place


def require_gone(home: Home, run_id: str, *, host_gone: bool) -> None:
    """RunBusyError: it is being written on this machine. ClosedRunError: it ended itself, or it may
    go on where this machine saw it, and nobody says (`host_gone`) that the host is gone for good.
    """
    if is_under_way(home, LocalHost(), run_id) or holder(lock_path(os.environ)) == f"run {run_id}":
        raise RunBusyError(
            f"run {run_id} is being written on this machine: its host is not gone",
            f"kit status {run_id}",
        )
    for place in places(home, run_id):
        if RunDirectory(place.home.run(run_id)).is_sealed:
            raise ClosedRunError(
                f"run {run_id} ended itself: its seal was seen on {place.name}",
                f"kit fetch-records {run_id}  (with the --host it was begun with)",
            )
        if not host_gone:
            raise ClosedRunError(
                f"run {run_id} was begun on {place.name} and can go on there",
                f"kit reproduce --run {run_id}, with the --host it was begun with; is that host "
                "gone for good: the same command with --host-gone",
            )


def require_all_home(home: Home, run: RunDirectory) -> None:
    """ClosedRunError unless every event that this machine saw of the run is among its records.

    NotAPrefixError: they are not what was seen.
    """
    run_id = run.path.name
    for place in places(home, run_id):
        seen = place.home.run(run_id) / run.events.name
        if seen.is_file():
            _require_begins(run, seen, place.name)


def _require_begins(run: RunDirectory, seen: Path, where: str) -> None:
    came_home = 0
    with seen.open("rb") as theirs, run.events.open("rb") as ours:
        for number, line in enumerate(theirs, 1):
            if not line.endswith(b"\n"):
                return  # torn: no event yet
            here = ours.readline()
            came_home += bool(here)
            if here and here != line:
                raise NotAPrefixError(
                    f"run {run.path.name}: {run.events} differs at line {number} from what was "
                    f"seen of it on {where}",
                    f"one of the two was edited: kit audit; what was seen stands in {seen}",
                )
            if not here:
                total = number + sum(1 for _ in theirs)
                raise ClosedRunError(
                    f"run {run.path.name}: {total} events were seen on {where}, and only "
                    f"{came_home} came home: closed now, it would lack what was seen",
                    f"bring the others: kit fetch-records {run.path.name} --unfinished "
                    "(with the --host it was begun with)",
                )
