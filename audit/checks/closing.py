"""A run that was closed, its host being gone, says truly what it lacks, and ends in that.

Invariant: where another check asks less of a closed run, this one says what is missing instead; a
run.closed that does not stand alone at the end of its run is an error, so that none can be put in
to have less asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from audit.finding import Check, Code, Finding
from audit.journal_scan import Event, JournalScan
from audit.repository import RepositoryView, RunView
from records.limits import printable
from records.plan import Plan, boot_order
from records.schema import (
    BootEnded,
    BootStarted,
    EngineBound,
    ModelBound,
    RunClosed,
    RunEnded,
    WindowStarted,
)

BEFORE_ONLY = Code(
    "CLOSE01",
    "warning",
    "bound before, not after: the run was closed, its host being gone",
    "Engine and models were bound before the boots, and no binding after the last window came "
    "home, nor the list of modules that run.ended has. That they did not change in between is "
    "likely and not shown: whatever rests on this run says so.",
    "nothing can be bound any more; measure the blocks once more where it matters",
)
LACKING = Code(
    "CLOSE02",
    "warning",
    "planned blocks are missing from a run that was closed",
    "Only blocks whose every boot came to an end on the host count. The others are missing, and "
    "nothing here shows whether more of them was recorded than came home: a closed run can be cut "
    "short before anybody else has seen it. Compare it with a commit, a copy or the host.",
    "kit reproduce --new --plan PLAN --blocks N,N measures them, if kit plan show PLAN still gives "
    "this run's plan digest",
)
MISPLACED = Code(
    "CLOSE03",
    "error",
    "run.closed is not the one end of its run",
    "A run that was closed ends in run.closed: once, as the last event, and without a run.ended. "
    "In any other place it would have less asked of a run whose host was there.",
    "restore the journal from git or from the host",
)
UNTRUE = Code(
    "CLOSE04",
    "error",
    "run.closed does not say what the journal says",
    "It counts the events before it, names the boot that was under way and what was not bound "
    "again, repeats the time of the event before, gives a reason, and was not written before its "
    "run began.",
    "restore the journal from git or from the host",
)


# As long as kit close lets a reason be.
_MOST_WORDS = 500


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Hold each run.closed against its own journal."""
    for run, scan in repository.readable():
        events = list(scan.of(RunClosed))
        if events:
            shown = repository.show(run.directory.events)
            yield from _alone(shown, scan, events)
            yield from _true(shown, scan, events[0])
            yield from _lacks(shown, run, scan, events[0])


def _alone(shown: str, scan: JournalScan, closed: list[Event]) -> Iterator[Finding]:
    for event in closed[1:]:
        yield MISPLACED.at(shown, event.line, "a second run.closed")
    for event in scan.of(RunEnded):
        yield MISPLACED.at(shown, event.line, "run.ended in a run that was closed")
    after = [event for event in scan.events[closed[0].line :] if event not in closed]
    if after:
        yield MISPLACED.at(shown, after[0].line, "an event after run.closed")


def _true(shown: str, scan: JournalScan, event: Event) -> Iterator[Finding]:
    said: RunClosed = event.value
    before = scan.events[: event.line - 1]
    started = scan.started
    last_ns = before[-1].envelope.t_ns if before else 0
    facts = [
        ("events that came home", str(said.came_home), str(event.line - 1)),
        ("interrupted boot", said.interrupted or "none", _open_boot(before) or "none"),
        ("not bound after", _some(said.not_bound_after), _some(_unbound(scan, before))),
        ("t_ns", str(event.envelope.t_ns), str(last_ns)),
        ("reason", _words(said.reason), "words"),
        ("kit", _words(said.kit), "words"),
    ]
    for name, got, want in facts:
        if got != want:
            yield UNTRUE.at(shown, event.line, f"{UNTRUE.title}: {name}", got, want)
    if started is not None and said.realtime_ns < started.clock.realtime_ns:
        got, want = str(said.realtime_ns), f"after {started.clock.realtime_ns}, run.started"
        yield UNTRUE.at(shown, event.line, f"{UNTRUE.title}: realtime_ns", got, want)


def _lacks(shown: str, run: RunView, scan: JournalScan, event: Event) -> Iterator[Finding]:
    said: RunClosed = event.value
    started = scan.started
    if started is None or not run.is_sealed:
        return
    if said.not_bound_after:
        message = f"run {run.name}: {BEFORE_ONLY.title}"
        yield BEFORE_ONLY.at(shown, event.line, message, _some(said.not_bound_after), "none")
    ends = _outcomes(scan)
    blocks: dict[int, bool] = {}
    for boot in boot_order(started.plan, started.blocks):
        done = ends.get(boot.id) in ("completed", "failed")
        blocks[boot.block] = blocks.get(boot.block, True) and done
    missing = [block for block, done in sorted(blocks.items()) if not done]
    if missing:
        listed = ", ".join(map(str, missing))
        message = f"run {run.name}: {len(missing)} of {len(blocks)} planned blocks are missing"
        found = LACKING.at(shown, event.line, message, f"without {listed}", "every block")
        yield replace(found, remedy=_another_run(started.plan, missing))


def _another_run(plan: Plan, missing: list[int]) -> str:
    # What kit/plans holds today decides nothing of a sealed run, and is not looked at here.
    blocks = ",".join(map(str, missing))
    return (
        f"kit reproduce --new --plan {plan.id} --blocks {blocks} measures them, if kit plan show "
        f"{plan.id} still gives {plan.digest}"
    )


def _words(text: str) -> str:
    """ "words" for one line that shows all it holds, as kit close takes it."""
    if not text.strip() or len(text) > _MOST_WORDS or printable(text) != text:
        return f"{len(text)} characters: {printable(text[:40])}" if text.strip() else "none"
    return "words"


def _open_boot(events: list[Event]) -> str:
    boot = ""
    for event in events:
        if isinstance(event.value, BootStarted):
            boot = event.value.boot
        elif isinstance(event.value, BootEnded):
            boot = ""
    return boot


def _outcomes(scan: JournalScan) -> dict[str, str]:
    """Planned boot -> how its last attempt ended; "" where it did not."""
    found: dict[str, str] = {}
    planned = {event.value.boot: event.value.planned for event in scan.of(BootStarted)}
    for event in scan.events:
        if isinstance(event.value, BootStarted):
            found[event.value.planned] = ""
        elif isinstance(event.value, BootEnded):
            found[planned.get(event.value.boot, "")] = event.value.outcome
    return found


def _unbound(scan: JournalScan, events: list[Event]) -> tuple[str, ...]:
    """The engine and the models without a binding "after" the last window."""
    last = max((e.line for e in events if isinstance(e.value, WindowStarted)), default=0)
    bound = {
        "engine" if isinstance(event.value, EngineBound) else event.value.model
        for event in events
        if isinstance(event.value, (EngineBound, ModelBound))
        and event.value.phase == "after"
        and event.line > last
    }
    wanted = ("engine", *(scan.started.plan.models if scan.started else ()))
    return tuple(name for name in wanted if name not in bound)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


CHECK = Check(
    "closing",
    "A run that was closed, its host being gone, says truly what it lacks, and ends in that.",
    (BEFORE_ONLY, LACKING, MISPLACED, UNTRUE),
    check,
    scope="meaning",
    kind="integrity",
)
