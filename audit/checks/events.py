"""Every line is a canonical event of a known format, in order of time."""

from __future__ import annotations

from collections.abc import Iterator

from audit.finding import Check, Code, Finding
from audit.journal_scan import Event, JournalScan
from audit.repository import RepositoryView, RunView
from records.schema import (
    FORMAT,
    Clock,
    JournalRepaired,
    RunClosed,
    RunEnded,
    RunResumed,
    RunStarted,
)

CANONICAL = Code(
    "EVENT01",
    "error",
    "a line is not canonical JSON",
    "One value has one byte string (records/canonical.py). Other spellings of the same value would "
    "have another hash.",
    "restore the journal from git or from the host",
)
UNDECODED = Code(
    "EVENT02",
    "error",
    "a line is not an event of this format",
    "Event types, keys and types of values are those of records/schema.py, and no others.",
    "audit with the version of this kit that wrote the run, or restore the journal",
)
SEQUENCE = Code(
    "EVENT03",
    "error",
    "a line's sequence number is not its place",
    "seq counts from 0, one a line.",
    "restore the journal from git or from the host",
)
BACKWARDS = Code(
    "EVENT04",
    "error",
    "time runs backwards",
    "t_ns is CLOCK_MONOTONIC, which never falls while the host stays up; a fall is only possible "
    "where run.resumed names another boot of the host.",
    "restore the journal from git or from the host",
)
ENDS = Code(
    "EVENT05",
    "error",
    "the run has no proper beginning or end",
    "The first event is run.started, the only one of its kind; a sealed run has one run.ended, "
    "after which nothing is measured; or a run.closed, where its host was gone.",
    "restore the journal from git or from the host",
)
VERSION = Code(
    "EVENT06",
    "error",
    "the run has another format version",
    "records/schema.py heads with the history of the format.",
    "audit with the version of this kit that wrote the run",
)

CLOCK = Code(
    "EVENT07",
    "error",
    "a clock reading does not lie between its event and the one before",
    "run.started, run.resumed, boot.started and run.ended carry a reading of CLOCK_MONOTONIC that "
    "was made after the line before was written and before their own was.",
    "restore the journal from git or from the host",
)

_KINDS = {"canonical": CANONICAL, "event": UNDECODED, "seq": SEQUENCE}


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Decode every journal strictly, then look at order and ends."""
    for run in repository.runs:
        scan = repository.scan(run)
        shown = repository.show(run.directory.events)
        for problem in scan.problems:
            yield _KINDS[problem.kind].at(shown, problem.line, problem.message)
        if scan.decodes and scan.events:
            yield from _time(shown, scan)
            yield from _clocks(shown, scan)
            yield from _ends(shown, run, scan)


def _time(shown: str, scan: JournalScan) -> Iterator[Finding]:
    started = scan.started
    host_boot = started.clock.host_boot if started else ""
    events = scan.events
    for index, event in enumerate(events):
        fell = index > 0 and event.envelope.t_ns < events[index - 1].envelope.t_ns
        if fell and _resumption(events, index) in (None, host_boot):
            yield BACKWARDS.at(
                shown,
                event.line,
                "",
                f"t_ns {event.envelope.t_ns}",
                f"at least {events[index - 1].envelope.t_ns}, as on the line before",
            )
        if isinstance(event.value, RunResumed):
            host_boot = event.value.clock.host_boot


def _clocks(shown: str, scan: JournalScan) -> Iterator[Finding]:
    before_ns = 0
    for event in scan.events:
        clock = getattr(event.value, "clock", None)
        if isinstance(clock, Clock):
            # A repaired line and its resumption may come from another boot of the host.
            least = 0 if isinstance(event.value, RunResumed) else before_ns
            if not least <= clock.monotonic_ns <= event.envelope.t_ns:
                got = f"monotonic_ns {clock.monotonic_ns}"
                yield CLOCK.at(shown, event.line, "", got, f"{least} to {event.envelope.t_ns}")
        before_ns = event.envelope.t_ns


def _resumption(events: list[Event], index: int) -> str | None:
    """The host's boot if a resumption begins at `index` (a repair may come first), else None."""
    for event in events[index:]:
        if isinstance(event.value, RunResumed):
            return event.value.clock.host_boot
        if not isinstance(event.value, JournalRepaired):
            return None
    return None


def _ends(shown: str, run: RunView, scan: JournalScan) -> Iterator[Finding]:
    started = scan.started
    if started is None:
        yield ENDS.at(shown, 1, "the first event is not run.started")
    elif started.format != FORMAT:
        yield VERSION.at(shown, 1, "", str(started.format), str(FORMAT))
    for event in scan.of(RunStarted):
        if event.line != 1:
            yield ENDS.at(shown, event.line, "a second run.started")
    ends = list(scan.of(RunEnded))
    if run.is_sealed and len(ends) != 1 and not (scan.closed and not ends):
        line = ends[-1].line if ends else scan.lines
        yield ENDS.at(shown, line, "a sealed run ends once", f"{len(ends)} run.ended", "1")
    if ends:
        # A harness that was killed between the end and the seal leaves a resumption after it.
        for event in scan.events[ends[0].line :]:
            if not isinstance(event.value, (RunResumed, JournalRepaired, RunEnded, RunClosed)):
                yield ENDS.at(shown, event.line, "an event after run.ended")


CHECK = Check(
    "events",
    "Every line is a canonical event of a known format, in order of time.",
    (CANONICAL, UNDECODED, SEQUENCE, BACKWARDS, ENDS, VERSION, CLOCK),
    check,
    scope="meaning",
    kind="integrity",
)
