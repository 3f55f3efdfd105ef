"""The client was calibrated on its host, at the concurrency of each window, before the window."""

from __future__ import annotations

from collections.abc import Iterator

from audit.finding import Check, Code, Finding
from audit.journal_scan import Event
from audit.repository import RepositoryView
from records.schema import Calibrated, RunResumed, WindowEnded, WindowStarted

ABSENT = Code(
    "CALIB01",
    "error",
    "a window at a concurrency that was not calibrated",
    "The client is part of every number. Before windows, and again after each resumption, it is "
    "measured against a server of known schedule at the plan's concurrencies.",
    "the run cannot stand: measure again",
)
OTHER_STAMPS = Code(
    "CALIB02",
    "error",
    "the calibration measured a client other than the one it vouches for",
    "A calibration answers for windows whose chunks are stamped in the same way, with the step gap "
    "that the plan names.",
    "the run cannot stand: measure again",
)

FIGURES = Code(
    "CALIB03",
    "error",
    "the figures of a calibration contradict each other",
    "Error percentiles do not fall; every chunk that did not share a read was compared; and the "
    "capacity follows from the client's report (remote/calibration.py).",
    "restore the journal from git or from the host",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Walk each run: what is calibrated when a window begins?"""
    for run, scan in repository.readable():
        if scan.started is None:
            continue
        shown = repository.show(run.directory.events)
        plan = scan.started.plan
        concurrency = {window.id: window.load.concurrency for window in plan.windows}
        by_peer = {window.id for window in plan.windows if window.by_peer}
        calibrated: dict[int, str] = {}
        for event in scan.events:
            value = event.value
            if isinstance(value, RunResumed):
                calibrated = {}
            elif isinstance(value, Calibrated):
                calibrated[value.concurrency] = value.report.stamps
                yield from _figures(shown, event)
                want_ns = plan.calibration.step_gap_ms * 1_000_000
                if value.step_gap_ns != want_ns:
                    yield OTHER_STAMPS.at(
                        shown, event.line, "", f"step gap {value.step_gap_ns} ns", f"{want_ns} ns"
                    )
            elif isinstance(value, WindowStarted):
                want = concurrency.get(value.window)
                if want is not None and want not in calibrated:
                    got = ", ".join(str(c) for c in sorted(calibrated)) or "none"
                    message = f"boot {value.boot}, window {value.window}: {ABSENT.title}"
                    yield ABSENT.at(shown, event.line, message, got, str(want))
            elif isinstance(value, WindowEnded):
                stamps = calibrated.get(concurrency.get(value.window, 0), value.report.stamps)
                if value.window in by_peer:  # it is calibrated by the kit's window beside it
                    stamps = "user"
                if value.report.stamps != stamps:
                    message = f"boot {value.boot}, window {value.window}: {OTHER_STAMPS.title}"
                    got = f"stamps by {value.report.stamps}"
                    yield OTHER_STAMPS.at(shown, event.line, message, got, f"by {stamps}")


def _figures(shown: str, event: Event) -> Iterator[Finding]:
    said: Calibrated = event.value
    report = said.report
    errors = [said.error_p50_ns, said.error_p99_ns, said.error_max_ns]
    busy_ns = max(report.busiest_cpu_ppm * report.wall_ns // 1_000_000 * report.workers, 1)
    pairs = [
        ("error p50, p99, max", errors, sorted(errors)),
        ("chunks compared", said.chunks, report.chunks - report.merged),
        ("capacity", said.capacity_chunks_per_s, report.chunks * 1_000_000_000 // busy_ns),
    ]
    for name, got, want in pairs:
        if got != want:
            message = f"concurrency {said.concurrency}, {name}: {FIGURES.title}"
            yield FIGURES.at(shown, event.line, message, str(got), str(want))


CHECK = Check(
    "calibration",
    "The client was calibrated on its host, at each window's concurrency, before the window.",
    (ABSENT, OTHER_STAMPS, FIGURES),
    check,
    scope="meaning",
    kind="conduct",
)
