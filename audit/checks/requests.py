"""What the requests of a window say fits together, and fits into the window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from analysis.facts import integer, part
from audit.finding import Check, Code, Finding
from audit.journal_scan import Event, JournalScan, RequestCount
from audit.repository import RepositoryView
from records import canonical
from records.load import Load
from records.schema import RunStarted, WindowEnded, WindowStarted

USAGE = Code(
    "REQ01",
    "error",
    "a request's usage does not count the tokens that it received",
    "A completed request's completion_tokens, from the server's usage, are the tokens of its "
    "chunks, from the token ids: two ways to the same number.",
    "restore the journal from git or from the host",
)
TIMES = Code(
    "REQ02",
    "error",
    "a request's times are out of order",
    "Scheduled, sent, first byte, chunks and end follow one another on one monotonic clock.",
    "restore the journal from git or from the host",
)
CROWDED = Code(
    "REQ03",
    "error",
    "more requests were under way at once than the load permits",
    "A closed loop has `concurrency` connections, each with one request at a time, and an open "
    "loop no more than that. Requests that overlap further were not measured in this window.",
    "restore the journal from git or from the host",
)
OUTSIDE = Code(
    "REQ04",
    "error",
    "a window's times do not fit between its events",
    "A window begins after its window.started was written and ends, wall_ns later, before its "
    "window.ended was; its requests end within wall_ns. The samplers of the host begin and end "
    "between both events and around the load, and no thread runs and waits for longer than the "
    "events are apart.",
    "restore the journal from git or from the host",
)
REPORT = Code(
    "REQ05",
    "error",
    "the client's report contradicts itself",
    "Percentiles of one distribution do not fall: the median lag is at most its p99, and that at "
    "most its maximum. Counts and times are not negative, and somebody did the work.",
    "restore the journal from git or from the host",
)
OUTCOME = Code(
    "REQ06",
    "error",
    "a completed request that the server did not complete",
    "Completed is what was answered with status 200 and ended without an error.",
    "restore the journal from git or from the host",
)
RAMP = Code(
    "REQ07",
    "error",
    "the ramp goes on after its end",
    "Requests of the ramp are left out of latencies. The ramp is a span of time at the start of a "
    "window: no request of it is sent after one that is none, or requests could be chosen.",
    "restore the journal from git or from the host",
)
_FAULTS = {"usage": USAGE, "time": TIMES, "outcome": OUTCOME}


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Walk the windows of each run."""
    for run, scan in repository.readable():
        shown = repository.show(run.directory.events)
        begun: dict[tuple[str, str], int] = {}
        for event in scan.events:
            if isinstance(event.value, WindowStarted):
                begun[event.value.boot, event.value.window] = event.envelope.t_ns
            elif isinstance(event.value, WindowEnded):
                yield from _window(shown, scan, event, begun)


def _window(
    shown: str, scan: JournalScan, event: Event, begun: dict[tuple[str, str], int]
) -> Iterator[Finding]:
    window: WindowEnded = event.value
    key = (window.boot, window.window)
    place = f"boot {window.boot}, window {window.window}"
    count = scan.count_of(window, event.line)
    for fault in count.faults:
        code = _FAULTS[fault.kind]
        message = f"{place}, request {fault.index}: {code.title}"
        yield code.at(shown, fault.line, message, fault.got, fault.want)
    yield from _crowd(shown, place, scan, event, count)
    yield from _limits(shown, place, event, count, begun.get(key))
    if 0 <= count.steady_first_ns < count.ramp_last_ns:
        got = f"one of the ramp sent at {count.ramp_last_ns} ns"
        want = f"none after {count.steady_first_ns} ns"
        yield RAMP.at(shown, count.line or event.line, f"{place}: {RAMP.title}", got, want)
    yield from _negative(shown, place, event, _load(scan.started, event.value.window))
    report = window.report
    lags = [report.lag_p50_ns, report.lag_p99_ns, report.lag_max_ns]
    if lags != sorted(lags):
        got = "lag p50 {}, p99 {}, max {} ns".format(*lags)
        yield REPORT.at(shown, event.line, f"{place}: {REPORT.title}", got, "values that rise")


# What a client that stamps in user space does not know, or, a plain one, does not count.
_UNKEPT = {"lag_p50_ns", "lag_p99_ns", "lag_max_ns", "late_send_p99_ns"}


def _negative(shown: str, place: str, event: Event, load: Load | None) -> Iterator[Finding]:
    """Counts and times below zero.

    -1 is a lag of a client that stamped itself, or kept none, and the lateness of a window in which
    no request had to wait: of a closed loop that sends one a stream.
    """
    window: WindowEnded = event.value
    said = {**asdict(window.report), "steal_ppm": window.steal_ppm}
    unknown = _UNKEPT if window.report.stamps != "kernel" else set()
    if load and load.kind == "closed" and window.report.planned <= load.concurrency:
        unknown = unknown | {"late_send_p99_ns"}
    for name, value in said.items():
        if isinstance(value, int) and value < (-1 if name in unknown else 0):
            yield REPORT.at(
                shown, event.line, f"{place}: {REPORT.title}", f"{name} {value}", "0 up"
            )
    if window.report.workers < 1:
        yield REPORT.at(shown, event.line, f"{place}: {REPORT.title}", "no worker", "1 or more")


def _crowd(
    shown: str, place: str, scan: JournalScan, event: Event, count: RequestCount
) -> Iterator[Finding]:
    load = _load(scan.started, event.value.window)
    most = load.concurrency if load and load.kind != "burst" else 0  # 0: no limit is known
    together = most_together(count)
    if most and together > most:
        yield CROWDED.at(
            shown,
            count.line or event.line,
            f"{place}: {CROWDED.title}",
            f"{together} at once",
            f"{most}",
        )


def most_together(count: RequestCount) -> int:
    """The largest number of requests under way at once; one that ends makes room first."""
    steps = [(ns, 1) for ns in count.sent_ns] + [(ns, -1) for ns in count.end_ns]
    now = most = 0
    for _, step in sorted(steps):
        now += step
        most = max(most, now)
    return most


def _limits(
    shown: str, place: str, event: Event, count: RequestCount, began_ns: int | None
) -> Iterator[Finding]:
    window: WindowEnded = event.value
    start_ns, wall_ns = window.start_ns, window.report.wall_ns
    message = f"{place}: {OUTSIDE.title}"
    if began_ns is not None and start_ns < began_ns:
        want = f"{began_ns} or later (t_ns of window.started)"
        yield OUTSIDE.at(shown, event.line, message, f"start_ns {start_ns}", want)
    if start_ns + wall_ns > event.envelope.t_ns:
        want = f"at most {event.envelope.t_ns} (t_ns of the event)"
        yield OUTSIDE.at(shown, event.line, message, f"end at {start_ns + wall_ns}", want)
    last_ns = max(count.end_ns, default=0)
    if last_ns > wall_ns:
        want = f"at most wall_ns {wall_ns}"
        yield OUTSIDE.at(shown, event.line, message, f"a request that ends at {last_ns}", want)
    apart_ns = canonical.MAX_INT if began_ns is None else event.envelope.t_ns - began_ns
    for got, want in _sampled(window, apart_ns):
        yield OUTSIDE.at(shown, event.line, message, got, want)


def _sampled(window: WindowEnded, apart_ns: int) -> Iterator[tuple[str, str]]:
    """What the samplers say that does not fit between events `apart_ns` apart, and what would.

    No slack: remote/window.py starts and ends them between the events, around the load. A thread
    is looked at before the host is and after it, so that its times are held against the events:
    in the runs to date those are 0.07 s and more longer, which is room for the ticks of the
    kernel's accounting and for a wait that began before the first look.
    """
    host, thread = part(window.facts, "host"), part(window.facts, "busiest_thread")
    wall_ns = window.report.wall_ns
    if "duration_ns" in host:
        length_ns = integer(host, "duration_ns")
        if length_ns is None or not wall_ns <= length_ns <= apart_ns:
            yield f"duration_ns {host['duration_ns']!r:.40}", f"{wall_ns} to {apart_ns}"
    if not thread:
        return
    times = {name: integer(thread, name) for name in ("on_cpu_ns", "waiting_ns", "timeslices")}
    for name, value in times.items():
        if value is None or value < 0:
            yield f"{name} {thread.get(name)!r:.40}", "a whole number from 0"
    together_ns = sum(times[name] or 0 for name in ("on_cpu_ns", "waiting_ns"))
    if together_ns > apart_ns:
        yield f"a thread that ran and waited for {together_ns} ns", f"at most {apart_ns}"


def _load(started: RunStarted | None, window_id: str) -> Load | None:
    """The load that the plan asks of this window; None where there is none of that name."""
    loads = {window.id: window.load for window in started.plan.windows} if started else {}
    return loads.get(window_id)


CHECK = Check(
    "requests",
    "What the requests of a window say fits together, and fits into the window.",
    (USAGE, TIMES, CROWDED, OUTSIDE, REPORT, OUTCOME, RAMP),
    check,
    scope="meaning",
    kind="integrity",
)
