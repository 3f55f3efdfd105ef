"""Closing as a way to drop what does not please: runs that ended, or went on, told to be cut off.

Invariant: as in of_meaning: everything that can be made anew is, so that the code which is expected
is that of what cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from audit.harness_archive import digest_of, sources_in
from tests import closed_run, sealed_run
from tests.audit.tamper.corruption import Corruption, first
from tests.audit.tamper.healthy import Event, Repository

Edit = Callable[[list[Event]], None]
_PLAN = sealed_run.small_plan(blocks=2, requests=4)


def _closing(events: list[Event], **said: Any) -> Event:
    """run.closed after these events, true but for what is said otherwise."""
    last = events[-1]
    value = {
        "came_home": len(events),
        "interrupted": "",
        "kit": "0.1.0",
        "not_bound_after": ["engine", "target", "drafter"],
        "realtime_ns": closed_run.REASON.realtime_ns,
        "reason": "the host went away",
    }
    return {"type": "run.closed", "t_ns": last["t_ns"], "value": {**value, **said}}


def _cut(events: list[Event]) -> None:
    """All after the start of the second block's first boot taken away, as if never come home."""
    begun = first(events, "boot.started", lambda value: value["planned"].startswith("b02"))
    del events[events.index(begun) + 1 :]
    events.append(_closing(events, interrupted=begun["value"]["boot"]))


def _shorn(events: list[Event]) -> None:
    """A run that ended, without the bindings, the observation and the modules of its end."""
    ends = [place for place, event in enumerate(events) if event["type"] == "boot.ended"]
    del events[ends[-1] + 1 :]
    events.append(_closing(events))


def _with_files(edit: Edit, name: str) -> Callable[[Repository], None]:
    """The edit, and the files that no event names any longer taken away."""

    def apply(repository: Repository) -> None:
        repository.rewrite(edit, name)
        text = repository.journal(name).read_text("utf-8")
        run = repository.run(name)
        for path in [*run.glob("logs/*"), *run.glob("metrics/*")]:
            if path.relative_to(run).as_posix() not in text:
                path.unlink()
        repository.reseal(name)
        repository.relist()

    return apply


def _committed(edit: Edit, name: str) -> Callable[[Repository], None]:
    def apply(repository: Repository) -> None:
        _with_files(edit, name)(repository)
        repository.commit("a host that went away")

    return apply


def _covered(edit: Edit, name: str = "run-3") -> Callable[[Repository], None]:
    def apply(repository: Repository) -> None:
        _with_files(edit, name)(repository)
        repository.rewrite_history()

    return apply


def _then(edit: Edit) -> Edit:
    """Cut and closed first."""

    def both(events: list[Event]) -> None:
        _cut(events)
        edit(events)

    return both


def _twice(events: list[Event]) -> None:
    events.append(_closing(events, interrupted=events[-1]["value"]["interrupted"]))


def _goes_on(events: list[Event]) -> None:
    seen = first(events, "host.observed")
    events.append({**seen, "t_ns": events[-1]["t_ns"]})


def _beside_an_end(events: list[Event]) -> None:
    events.append(_closing(events, not_bound_after=[]))


def _says(**said: Any) -> Edit:
    return _then(lambda events: events[-1]["value"].update(said))


def _shorter_before_closing(repository: Repository) -> None:
    """Three boots came home and were committed; the third is taken away, then the run closed."""
    plan, shape = _PLAN, _of_gone_host(repository)
    run = closed_run.cut_short(repository.data / "run-4", 3, plan, shape)
    repository.commit("what came home")
    aside = closed_run.cut_short(repository.root.parent / "aside" / "run-4", 2, plan, shape)
    run.events.write_bytes(aside.events.read_bytes())
    closed_run.closed(run)
    repository.commit("closed")


def _given_up(repository: Repository) -> None:
    """A run is given up for another on a host that stays, and closed as if the host had gone."""
    shape = _of_gone_host(repository)
    earlier, later = sorted(("run-4", "run-5"), key=sealed_run.begins_ns)
    closed_run.closed(closed_run.cut_short(repository.data / earlier, 2, _PLAN, shape))
    repository.commit("closed")
    repository.add_run(later, shape)


def _of_gone_host(repository: Repository) -> sealed_run.Shape:
    harness = digest_of(sources_in(repository.root))
    return sealed_run.Shape(edit=closed_run.gone_host, harness=harness)


ALL: tuple[Corruption, ...] = (
    Corruption(
        "a run that ended cut short and closed, committed", "HIST02", _committed(_cut, "run-3")
    ),
    Corruption("a signed run that ended cut short and closed", "SIGN01", _covered(_cut, "run-2")),
    Corruption("a block dropped by closing, history made anew", "CLOSE02", _covered(_cut)),
    Corruption("the end of a run shorn, and the run closed", "CLOSE01", _covered(_shorn)),
    Corruption("an open run cut shorter before it was closed", "HIST02", _shorter_before_closing),
    Corruption("a run given up for another, and closed", "TIME02", _given_up),
    Corruption("a run closed twice", "CLOSE03", _covered(_then(_twice))),
    Corruption("a closed run that goes on", "CLOSE03", _covered(_then(_goes_on))),
    Corruption("run.closed after run.ended", "CLOSE03", _covered(_beside_an_end)),
    Corruption("events left out of what came home", "CLOSE04", _covered(_says(came_home=3))),
    Corruption("the boot under way hidden", "CLOSE04", _covered(_says(interrupted=""))),
    Corruption("a missing binding hidden", "CLOSE04", _covered(_says(not_bound_after=[]))),
    Corruption("closed without a reason", "CLOSE04", _covered(_says(reason=""))),
    Corruption("closed before it began", "CLOSE04", _covered(_says(realtime_ns=0))),
)
