"""Lies of what followed what, and of lists in git that are none, with all that hangs on them anew.

Invariant: as of the other corruptions: everything that can be recomputed is, and the expected code
is that of the rule it breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME
from tests.audit.tamper.corruption import Corruption, covered_up, every, first, put
from tests.audit.tamper.healthy import Event, Repository


def _last(events: list[Event], kind: str) -> int:
    """Where the last event of a type stands."""
    return max(i for i, event in enumerate(events) if event["type"] == kind)


def _begun_again(events: list[Event]) -> None:
    events.insert(1, {**deepcopy(events[0]), "t_ns": events[1]["t_ns"]})


def _ended_again(events: list[Event]) -> None:
    at = _last(events, "boot.ended")
    events.insert(at + 1, deepcopy(events[at]))


def _no_last_end(events: list[Event]) -> None:
    del events[_last(events, "boot.ended")]


def _end_of_another(events: list[Event]) -> None:
    first(events, "window.ended", lambda v: v["window"] == "c1")["value"]["window"] = "c2"


def _beyond_its_window(events: list[Event]) -> None:
    """A request that goes on after the window has ended, by the window's own clock."""
    for value in every(events, "window.requests"):
        for request in value["requests"]:
            request["end_ns"] += 10**12
        return


def _beside_the_tables(repository: Repository) -> None:
    (repository.root / "paper" / "tables" / "better.csv").write_text("arm,tok/s\ndraft,1000\n")


def _committed(name: str, text: str) -> Callable[[Repository], None]:
    """A list that is none in one commit, as it was in the next."""

    def apply(repository: Repository) -> None:
        path = repository.data / name
        kept = path.read_bytes()
        path.write_text(text)
        repository.commit("a list")
        path.write_bytes(kept)
        repository.commit("the list again")

    return apply


def _both_committed(repository: Repository) -> None:
    """Both lists at once, so that the one that cannot be read is a step of CHECKPOINT itself."""
    paths = [repository.data / name for name in (RUNS_NAME, CHECKPOINT_NAME)]
    kept = [path.read_bytes() for path in paths]
    paths[0].write_text("".join(kept[0].decode().splitlines(keepends=True)[:1]))
    paths[1].write_text(kept[1].decode().replace("\n3\n", "\n2\n"))
    repository.commit("one run fewer, by RUNS")
    for path, data in zip(paths, kept, strict=True):
        path.write_bytes(data)
    repository.commit("all runs again")


def _published_nonsense(repository: Repository) -> None:
    """What others have seen holds lists that are none; the history here does not know of it."""
    head = repository.git("rev-parse", "HEAD")
    (repository.data / RUNS_NAME).write_text("no run\n")
    repository.commit("published")
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD")
    repository.git("reset", "-q", "--hard", head)


def _cold(value: Any) -> bool:
    return bool(value["planned"] and value["arm"] == "none")


ALL: tuple[Corruption, ...] = (
    Corruption("a run that begins twice", "EVENT05", covered_up(_begun_again)),
    Corruption("a boot that ends twice", "COVER02", covered_up(_ended_again)),
    Corruption("the last boot without an end", "COVER02", covered_up(_no_last_end)),
    Corruption("the end of a window that had not begun", "SEQ01", covered_up(_end_of_another)),
    Corruption("requests that outlast their window", "REQ04", covered_up(_beyond_its_window)),
    Corruption(
        "a client of no process",
        "REQ05",
        covered_up(put("window.ended", "report", "workers", to=0)),
    ),
    Corruption(
        "a cold boot whose caches were full",
        "ENGINE06",
        covered_up(put("boot.started", "compile_cache", "files", to=3, where=_cold)),
    ),
    Corruption("a table beside those of runs", "TABLE03", _beside_the_tables),
    Corruption(
        "a commit whose CHECKPOINT is none", "HIST05", _committed(CHECKPOINT_NAME, "3 runs\n")
    ),
    Corruption("a commit whose RUNS is none", "HIST05", _committed(RUNS_NAME, "no run\n")),
    Corruption("a commit of a CHECKPOINT and another RUNS", "HIST05", _both_committed),
    Corruption("a published RUNS that is none", "HIST06", _published_nonsense),
)
