"""One way of spoiling a repository, and the code by which the audit must know it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from records.decode import from_object
from records.plan import Plan
from tests.audit.tamper.healthy import Event, Repository


@dataclass(frozen=True, slots=True)
class Corruption:
    """`name` says what is done; `expected` is the code of the check that owns it."""

    name: str
    expected: str
    apply: Callable[[Repository], None]


def first(events: list[Event], kind: str, where: Callable[[Any], bool] = lambda _: True) -> Event:
    """The first event of a type whose value fits."""
    return next(event for event in events if event["type"] == kind and where(event["value"]))


def every(events: list[Event], kind: str) -> list[Any]:
    """The values of all events of a type."""
    return [event["value"] for event in events if event["type"] == kind]


def drop(kind: str, where: Callable[[Any], bool] = lambda _: True) -> Callable[[list[Event]], None]:
    """An edit that leaves out the first event of a type whose value fits."""
    return lambda events: events.remove(first(events, kind, where))


def put(
    kind: str, *path: str | int, to: Any, where: Callable[[Any], bool] = lambda _: True
) -> Callable[[list[Event]], None]:
    """An edit that sets one place in the value of the first fitting event; `to` may be a function
    of the value that stood there.
    """

    def edit(events: list[Event]) -> None:
        target = first(events, kind, where)["value"]
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = to(target[path[-1]]) if callable(to) else to

    return edit


def replanned(change: Callable[[Any], None]) -> Callable[[list[Event]], None]:
    """Another plan, under its right digest."""

    def edit(events: list[Event]) -> None:
        started = events[0]["value"]
        change(started["plan"])
        started["plan_digest"] = str(from_object(Plan, started["plan"]).digest)

    return edit


def covered_up(
    edit: Callable[[list[Event]], None], name: str = "run-3"
) -> Callable[[Repository], None]:
    """The edit, with chain, seal, lists and history made anew: nothing but its meaning is left."""
    return lambda repository: repository.cover_up(edit, name)
