"""The steps of each boot stand in its record, in their order, and the host stays one host."""

from __future__ import annotations

from collections.abc import Iterator

from audit.finding import Check, Code, Finding
from audit.journal_scan import Event, JournalScan
from audit.repository import RepositoryView, RunView
from records.schema import (
    BootEnded,
    BootHealthy,
    BootStarted,
    BootWarmed,
    EngineDecided,
    HostObserved,
    WindowEnded,
    WindowStarted,
)

ASTRAY = Code(
    "SEQ01",
    "error",
    "an event of a boot that is not under way",
    "Boots follow one another: between boot.started and boot.ended every event is of that boot, "
    "and a window ends before the next begins.",
    "restore the journal from git or from the host",
)
LACKING = Code(
    "SEQ02",
    "error",
    "a completed boot lacks a step",
    "A measured boot became healthy, was warmed up and said what the engine decided, before its "
    "first window; at its end its log was kept. Without them nobody can tell what was measured.",
    "the run cannot stand: measure again",
)
HOST = Code(
    "SEQ03",
    "error",
    "the host is not observed at both ends, or is not one host",
    "host.observed stands at the start and at the end of a run. The salted id of the host changes "
    "only where the run was resumed.",
    "the run cannot stand: measure again",
)

_OF_A_BOOT = (BootHealthy, BootWarmed, EngineDecided, WindowStarted, WindowEnded)
_STEPS = {"boot.healthy": BootHealthy, "boot.warmed": BootWarmed, "engine.decided": EngineDecided}


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Walk each run; the reference server of a synthetic one is no engine."""
    for run, scan in repository.readable():
        if scan.started is not None and not scan.started.synthetic:
            shown = repository.show(run.directory.events)
            yield from _boots(shown, scan)
            yield from _hosts(shown, run, scan)


def _boots(shown: str, scan: JournalScan) -> Iterator[Finding]:
    boot: BootStarted | None = None
    window, steps, lacking = "", set[str](), ""
    for event in scan.events:
        value = event.value
        if isinstance(value, BootStarted):
            boot, window, steps, lacking = value, "", set(), ""
        elif isinstance(value, _OF_A_BOOT):
            wanted = boot.boot if boot else "no boot"
            if value.boot != wanted:
                yield ASTRAY.at(shown, event.line, "", f"{value.TYPE} of {value.boot}", wanted)
                continue
            if isinstance(value, WindowStarted) and not steps >= _STEPS.keys():
                lacking = lacking or ", ".join(sorted(_STEPS.keys() - steps))
            if isinstance(value, WindowEnded) and value.window != window:
                got = f"the end of {value.window}"
                yield ASTRAY.at(shown, event.line, "", got, f"that of {window or 'none'}")
            window = value.window if isinstance(value, WindowStarted) else window
            steps.update(name for name, kind in _STEPS.items() if isinstance(value, kind))
        elif isinstance(value, BootEnded):
            message = f"boot {value.boot}: {LACKING.title}"
            if value.outcome == "completed" and lacking:
                yield LACKING.at(shown, event.line, message, f"no {lacking}", "before a window")
            if value.outcome == "completed" and not value.logs:
                yield LACKING.at(shown, event.line, message, "no log", "the engine's log")
            boot, window = None, ""


def _hosts(shown: str, run: RunView, scan: JournalScan) -> Iterator[Finding]:
    seen: list[Event] = list(scan.of(HostObserved))
    phases = [event.value.phase for event in seen]
    # The end of a run that was closed is missing, as audit/checks/closing.py says.
    ends = scan.closed is not None or phases[-1:] == ["end"]
    if run.is_sealed and (phases[:1] not in (["start"], ["resume"]) or not ends):
        got = ", ".join(phases) or "none"
        yield HOST.at(shown, seen[-1].line if seen else scan.lines, "", got, "start … end")
    host = ""
    for event in seen:
        value = event.value
        if host and value.host_id != host and value.phase != "resume":
            yield HOST.at(shown, event.line, "", value.host_id, host)
        host = value.host_id


CHECK = Check(
    "sequence",
    "The steps of each boot stand in its record, in their order, and the host stays one host.",
    (ASTRAY, LACKING, HOST),
    check,
    scope="meaning",
    kind="conduct",
)
