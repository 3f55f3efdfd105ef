"""Everything planned came to an end that is recorded: boots, windows and requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from audit.finding import Check, Code, Finding
from audit.journal_scan import Event, JournalScan, RequestCount
from audit.repository import RepositoryView, RunView
from records.measurement import OUTCOMES
from records.plan import Plan, PlannedBoot, boot_order
from records.schema import (
    BootEnded,
    BootStarted,
    RunEnded,
    RunResumed,
    WindowEnded,
    WindowStarted,
)

PLANNED = Code(
    "COVER01",
    "error",
    "a planned boot did not end in success or failure",
    "In a sealed run each planned boot's last attempt ended as completed or failed. Otherwise a "
    "boot could be left out because of its result. (What is missing from a run that was closed, "
    "its host being gone, CLOSE02 counts.)",
    "the run cannot stand: measure again",
)
OPEN_BOOT = Code(
    "COVER02",
    "error",
    "a boot started and no end is recorded",
    "Every boot.started is followed by its boot.ended before the next boot starts; after a kill, "
    "the resumption writes it.",
    "resume the run: kit reproduce --run RUN_ID",
)
WINDOWS = Code(
    "COVER03",
    "error",
    "a completed boot lacks a planned window",
    "Each boot measures the same windows, in order, once.",
    "the run cannot stand: measure again",
)
INDICES = Code(
    "COVER04",
    "error",
    "requests of a window are missing or there twice",
    "The requests of a window are numbered from 0 without a gap, whatever became of them.",
    "restore the journal from git or from the host",
)
COUNTS = Code(
    "COVER05",
    "error",
    "the client's report does not add up to its requests",
    "planned = completed + failed + cancelled, and each count, the chunks and the merged chunks "
    "are those of the requests recorded.",
    "restore the journal from git or from the host",
)
BUDGET = Code(
    "COVER06",
    "error",
    "a window did not send the requests that the plan asks for",
    "Where the plan gives a number of requests and no duration, that number was sent.",
    "the run cannot stand: measure again",
)
LEFT_OUT = Code(
    "COVER08",
    "error",
    "a block was left out that had begun, or that is not among the last",
    "A run on a host that goes back at a known time may leave out the last of its blocks, whole, "
    "before any of their boots. Another choice could be one by results.",
    "the run cannot stand: measure again",
)
TOTALS = Code(
    "COVER07",
    "error",
    "run.ended does not count its boots rightly",
    "run.ended says how many planned boots completed and failed.",
    "restore the journal from git or from the host",
)
AGAIN = Code(
    "COVER09",
    "warning",
    "a boot that was measured to its end was interrupted and made again",
    "A boot is made again where the host or the harness stopped. One in which every window had "
    "ended already had shown its results: of two such boots the one that pleases could be kept.",
    "look at both attempts (kit analyze, table boots); the cause stands in boot.ended",
)
ENDED_EARLY = Code(
    "COVER10",
    "warning",
    "blocks were left out by a harness that came back to results",
    "When the host goes back is said when a run begins, and again when it is resumed. After the "
    "first window that can be said by results: a run could be ended while they please.",
    "hold it against when the host did go back, or measure these blocks in another run",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Hold what happened in each run against what its plan asks for."""
    for run, scan in repository.readable():
        if scan.started is None:
            continue
        shown = repository.show(run.directory.events)
        plan = scan.started.plan
        yield from _boots(shown, run, scan, boot_order(plan, scan.started.blocks))
        yield from _windows(shown, scan, plan)


def _boots(
    shown: str, run: RunView, scan: JournalScan, planned: tuple[PlannedBoot, ...]
) -> Iterator[Finding]:
    last: dict[str, str] = {}
    open_boot: Event | None = None
    begun = {event.value.planned for event in scan.of(BootStarted)}
    first = min((event.line for event in scan.of(WindowStarted)), default=scan.lines)
    resumed = [event.line for event in scan.of(RunResumed) if event.line > first]
    for event in scan.of(RunEnded):
        yield from _left_out(shown, event, begun, planned)
        if event.value.left_out and resumed:
            got = f"{_some(list(event.value.left_out))}, resumed in line {resumed[-1]}"
            yield ENDED_EARLY.at(shown, event.line, "", got, "none, or no resumption")
        out = set(event.value.left_out)
        planned = tuple(boot for boot in planned if boot.block not in out)
    for event in scan.events:
        value = event.value
        if isinstance(value, BootStarted):
            if open_boot is not None:
                yield OPEN_BOOT.at(shown, open_boot.line, "", open_boot.value.boot, "boot.ended")
            open_boot = event
            if value.planned:
                last[value.planned] = "open"
        elif isinstance(value, BootEnded):
            if open_boot is None or open_boot.value.boot != value.boot:
                yield OPEN_BOOT.at(
                    shown, event.line, "a boot ended that was not open", value.boot, "an open boot"
                )
                continue
            if open_boot.value.planned:
                last[open_boot.value.planned] = value.outcome
            open_boot = None
    if not run.is_sealed:
        return
    if scan.closed is not None:
        # The boot under way has no end; that it is the one which run.closed names, and what is
        # missing besides, audit/checks/closing.py says.
        return
    if open_boot is not None:
        yield OPEN_BOOT.at(shown, open_boot.line, "", open_boot.value.boot, "boot.ended")
    for boot in planned:
        outcome = last.get(boot.id, "never started")
        if outcome not in ("completed", "failed"):
            message = f"boot {boot.id}: {PLANNED.title}"
            yield PLANNED.at(shown, scan.lines, message, outcome, "completed or failed")
    counted = Counter(last.get(boot.id) for boot in planned)
    for event in scan.of(RunEnded):
        got = f"{event.value.completed} completed, {event.value.failed} failed"
        want = f"{counted['completed']} completed, {counted['failed']} failed"
        if got != want:
            yield TOTALS.at(shown, event.line, "", got, want)


def _left_out(
    shown: str, event: Event, begun: set[str], planned: tuple[PlannedBoot, ...]
) -> Iterator[Finding]:
    """The blocks that run.ended names are the last ones, and none of them has begun."""
    out = event.value.left_out
    blocks = sorted({boot.block for boot in planned})
    if out and list(out) != blocks[-len(out) :]:
        yield LEFT_OUT.at(shown, event.line, "", _some(list(out)), f"the last of {_some(blocks)}")
    for boot in planned:
        if boot.block in out and boot.id in begun:
            yield LEFT_OUT.at(shown, event.line, "", f"boot {boot.id} had begun", "no boot of it")


def _windows(shown: str, scan: JournalScan, plan: Plan) -> Iterator[Finding]:
    planned = {window.id: window for window in plan.windows}
    boots = {event.value.boot: event.value for event in scan.of(BootStarted)}
    begun: dict[str, list[str]] = {}
    ended: dict[str, list[str]] = {}
    for event in scan.events:
        value = event.value
        if isinstance(value, WindowStarted):
            begun.setdefault(value.boot, []).append(value.window)
        elif isinstance(value, WindowEnded):
            ended.setdefault(value.boot, []).append(value.window)
            count = scan.count_of(value, event.line)
            yield from _requests(shown, event, count)
            window = planned.get(value.window)
            if window and window.load.requests and not window.load.duration_ms:
                got, want = value.report.planned, window.load.requests
                if got != want:
                    yield BUDGET.at(shown, event.line, "", str(got), str(want))
        elif isinstance(value, BootEnded) and value.outcome == "interrupted":
            if plan.window_ids and ended.get(value.boot) == plan.window_ids:
                yield AGAIN.at(shown, event.line, f"boot {value.boot}: {AGAIN.title}", value.cause)
        elif isinstance(value, BootEnded) and value.outcome == "completed":
            boot = boots.get(value.boot)
            want_ids = plan.window_ids if boot and boot.planned else []
            for verb, found in (("started", begun), ("ended", ended)):
                got_ids = found.get(value.boot, [])
                if got_ids != want_ids:
                    message = f"boot {value.boot}: windows {verb} are not those planned"
                    yield WINDOWS.at(
                        shown,
                        event.line,
                        message,
                        ", ".join(got_ids) or "none",
                        ", ".join(want_ids),
                    )


def _requests(shown: str, event: Event, count: RequestCount) -> Iterator[Finding]:
    window: WindowEnded = event.value
    report = window.report
    place = f"boot {window.boot}, window {window.window}"
    seen = Counter(count.indices)
    missing = [i for i in range(report.planned) if i not in seen]
    twice = [i for i, times in sorted(seen.items()) if times > 1 or not 0 <= i < report.planned]
    if missing or twice:
        line = count.line or event.line
        got = f"missing {_some(missing)}; twice or beyond {_some(twice)}"
        want = f"0 to {report.planned - 1}, once each"
        yield INDICES.at(shown, line, f"{place}: {INDICES.title}", got, want)
    pairs = [(name, getattr(report, name), count.outcomes.get(name, 0)) for name in OUTCOMES]
    pairs += [("chunks", report.chunks, count.chunks), ("merged", report.merged, count.merged)]
    for name, said, counted in pairs:
        if said != counted:
            message = f"{place}: {COUNTS.title}"
            yield COUNTS.at(
                shown, event.line, message, f"{name} {said}", f"{counted} (from the requests)"
            )


def _some(indices: list[int]) -> str:
    shown = ", ".join(str(i) for i in indices[:5])
    return (shown or "none") + (f" and {len(indices) - 5} more" if len(indices) > 5 else "")


CHECK = Check(
    "coverage",
    "Every planned boot, window and request came to an end that is recorded.",
    (PLANNED, OPEN_BOOT, WINDOWS, INDICES, COUNTS, BUDGET, TOTALS, LEFT_OUT, AGAIN, ENDED_EARLY),
    check,
    scope="meaning",
    kind="conduct",
)
