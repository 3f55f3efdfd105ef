"""A window beyond a bound of its plan is void: decided again here, from what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from analysis.acceptance import most_drafted
from analysis.facts import integer, part, parts
from audit.finding import Check, Code, Finding
from audit.gpu_facts import COLUMNS, cards, faults, unwatched
from audit.journal_scan import Event, JournalScan
from audit.repository import RepositoryView
from records.clock_reasons import POWER_CAP
from records.plan import Bounds, Plan
from records.schema import Calibrated, HostObserved, WindowEnded

NOT_VOIDED = Code(
    "VOID01",
    "error",
    "a window beyond a bound of the plan is not void",
    "The harness voids a window by the rules of remote/validity.py and records the reason. This "
    "check decides again from the recorded figures, so that no reason can be left out.",
    "restore the journal from git or from the host",
)
CONTRADICTED = Code(
    "VOID02",
    "error",
    "a window is void for a reason that its figures do not show",
    "A window may not be voided because of its result. Every rule of remote/validity.py depends on "
    "recorded figures alone and is decided again here: this one comes out otherwise, or there is "
    "no such rule.",
    "look at the harness that wrote the run: its digest is in run.started",
)

ACCEPTANCE = Code(
    "VOID03",
    "warning",
    "the server's counters and the client's chunks disagree on accepted tokens",
    "Tokens minus chunks, over a window, is what the counters say was accepted, less what the ends "
    "of requests cut off (analysis/acceptance.py). A request with a list of its steps says itself "
    "what its end cut off: its chunks are the steps of the list, in order, and where the list is "
    "shorter than they are, only chunks of one token are not in it. One whose list the server lost "
    "may have lost as much as a step drafts, or hold one step more where its last chunk has room "
    "for two. Else a chunk is not a step here, and step gaps are not times between steps.",
    "look for steps that the server put into one chunk; acceptance is then that of the counters",
)

UNWATCHED = Code(
    "VOID04",
    "warning",
    "a window on a GPU that nothing watched",
    "The plan asks for a GPU, and the window holds no sample of one, none of a GPU that the host "
    "has, or none that told its clock reasons: whether its clocks were throttled cannot be told. "
    "nvidia-smi did not answer, or its samples were left out.",
    "make nvidia-smi work where the harness runs (kit doctor), then measure again",
)

GPU_FACTS = Code(
    "VOID05",
    "error",
    "a window says of its GPUs what no harness writes",
    "A trace has four columns of as many samples, one or more, and a list of clock reasons by the "
    "names of records/clock_reasons.py; counts are whole numbers. What is of another shape shows "
    "no throttling and no error, whatever the GPU did.",
    "restore the journal from git or from the host",
)

# Every rule of remote/validity.py: none needs more than what the journal holds.
_DECIDABLE = (
    "client-lag",
    "client-cpu",
    "client-clock",
    "merged",
    "jit",
    "lost-requests",
    "short-responses",
    "host-steal",
    "counters-disagree",
    "calibration",
    "prefix-cache",
    "gpu-throttle",
    "gpu-error",
    "gpu-foreign",
)

# Of one window's GPUs: a spoilt line cannot fill the memory.
_MOST_FAULTS = 20

# What a window of another client than the kit's is there to show (remote/validity.py).
_OF_THE_CLIENT = frozenset({"client-lag", "client-cpu", "client-clock", "merged", "calibration"})

# nvml.h, nvmlClocksEventReason*: those that lower the clock below what the load asks for.
_THROTTLES = frozenset(
    {
        POWER_CAP,
        "hardware slowdown",
        "software thermal slowdown",
        "hardware thermal slowdown",
        "hardware power brake slowdown",
    }
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Decide every ended window again."""
    for run, scan in repository.readable():
        if scan.started is None:
            continue
        shown = repository.show(run.directory.events)
        calibrated: dict[int, int] = {}
        uuids: list[str] = []
        for event in scan.events:
            value = event.value
            if isinstance(value, Calibrated):
                calibrated[value.concurrency] = value.bound_ns
            elif isinstance(value, HostObserved):
                uuids = cards(value.facts)
            elif isinstance(value, WindowEnded):
                plan = scan.started.plan
                beyond = _beyond(plan, scan, value, calibrated)
                said = {reason.partition(":")[0] for reason in value.void}
                place = f"boot {value.boot}, window {value.window}"
                for rule in sorted(beyond.keys() - said):
                    message = f"{place}: {NOT_VOIDED.title}"
                    yield NOT_VOIDED.at(shown, event.line, message, beyond[rule], f"void: {rule}")
                yield from _acceptance(shown, event, scan)
                if plan.requirements.compute_capability > 0 and not scan.started.synthetic:
                    yield from _unwatched(shown, event, place, uuids)
                for got, want in islice(faults(value.facts), _MOST_FAULTS):
                    yield GPU_FACTS.at(shown, event.line, f"{place}: {GPU_FACTS.title}", got, want)
                yield from _contradicted(shown, event, scan, place, said - beyond.keys())


def _contradicted(
    shown: str, event: Event, scan: JournalScan, place: str, rules: set[str]
) -> Iterator[Finding]:
    """Reasons that the figures do not show."""
    if scan.started and scan.started.synthetic and event.value.counters.prefix_cache_hits > 0:
        rules = rules - {"prefix-cache"}  # there the harness may tell it (_declares_prefix_cache)
    for rule in sorted(rules):
        message = f"{place}: {CONTRADICTED.title}"
        want = "not void" if rule in _DECIDABLE else "a rule of remote/validity.py"
        yield CONTRADICTED.at(shown, event.line, message, f"void: {rule:.80}", want)


def _unwatched(shown: str, event: Event, place: str, uuids: list[str]) -> Iterator[Finding]:
    left_out = unwatched(event.value.facts, uuids)
    if left_out and not event.value.void:
        yield UNWATCHED.at(shown, event.line, f"{place}: {UNWATCHED.title}", left_out, "samples")


def _acceptance(shown: str, event: Event, scan: JournalScan) -> Iterator[Finding]:
    window: WindowEnded = event.value
    arm = scan.arm_of(window.boot)
    if arm is None or window.void or window.counters.drafts <= 0:
        return
    report, count = window.report, scan.count_of(window)
    if report.completed != report.planned:
        return
    message = f"boot {window.boot}, window {window.window}: {ACCEPTANCE.title}"
    if count.not_steps:
        got = f"{count.not_steps} requests whose chunks are not the steps of their own lists"
        yield ACCEPTANCE.at(shown, event.line, message, got, "none")
    seen, accepted = count.tokens - count.chunks, window.counters.accepted_tokens
    # Only a request without a list leaves room: vLLM 0.29.0 loses that of one whose last chunk
    # holds two steps.
    most = count.cut_off + most_drafted(arm, window.counters) * count.unlisted
    least = count.cut_off - (count.unlisted - count.unlisted_alone)
    if not least <= accepted - seen <= most:
        cut = f"{least} to {most}" if least < most else str(most)
        want = f"{accepted} by the server, less {cut} cut off"
        yield ACCEPTANCE.at(shown, event.line, message, f"{seen} seen by the client", want)


def _beyond(
    plan: Plan, scan: JournalScan, window: WindowEnded, calibrated: dict[int, int]
) -> dict[str, str]:
    """Rule -> the figure that breaks it."""
    bounds = plan.bounds
    planned = next((w for w in plan.windows if w.id == window.window), None)
    by_peer = planned is not None and planned.by_peer
    found = {
        rule: figure
        for rule, figure in _client(bounds, window)
        if not (by_peer and rule in _OF_THE_CLIENT)
    }
    error_ns = calibrated.get(planned.load.concurrency if planned else 0, -1)
    if not by_peer and (error_ns < 0 or error_ns > bounds.calibrated_p99_ns):
        found["calibration"] = f"error {error_ns} ns, bound {bounds.calibrated_p99_ns}"
    count = scan.count_of(window)
    if count.short:
        found["short-responses"] = f"{count.short} short responses"
    hits = window.counters.prefix_cache_hits
    if hits > 0 and not _declares_prefix_cache(scan, window):
        found["prefix-cache"] = f"{hits} tokens from an undeclared cache"
    found.update(_gpu(bounds, window))
    report = window.report
    generated = window.counters.generation_tokens
    if report.completed == report.planned and generated not in (-1, count.tokens):
        found["counters-disagree"] = f"server {generated} tokens, client {count.tokens}"
    return found


def _declares_prefix_cache(scan: JournalScan, window: WindowEnded) -> bool:
    if scan.started and scan.started.synthetic:
        return True  # the reference server's option is no engine's (remote/engine/adapters.py)
    arm = scan.arm_of(window.boot)
    return arm is not None and "--enable-prefix-caching" in arm.args


def _reasons(trace: dict[str, Any]) -> set[str]:
    """Every clock reason in a GPU's samples; a trace of another shape holds none."""
    reasons = trace.get("reasons")
    return set(map(str, reasons)) if isinstance(reasons, list) else set()


def _drop_ppm(trace: dict[str, Any]) -> int:
    """The lowest SM clock below the highest, in millionths; 1,000,000 where a sample has none.

    So too where the columns are not of one length: samples were taken out of them.
    """
    columns = [trace.get(name) for name in COLUMNS]
    lengths = {len(column) if isinstance(column, list) else -1 for column in columns}
    clocks = columns[0] if len(lengths) == 1 and isinstance(columns[0], list) else []
    if not clocks or not all(type(clock) is int for clock in clocks):
        return 1_000_000
    low, high = min(clocks), max(clocks)
    return (high - low) * 1_000_000 // high if low >= 0 and high > 0 else 1_000_000


def _gpu(bounds: Bounds, window: WindowEnded) -> Iterator[tuple[str, str]]:
    traces = parts(part(window.facts, "gpu"), "traces")
    throttled = sorted(set().union(*map(_reasons, traces)) & _THROTTLES)
    # A card at no limit of its own decides nothing: an idle one may do with its clock as it likes.
    drops = [_drop_ppm(trace) for trace in traces if POWER_CAP in _reasons(trace)]
    declared = throttled == [POWER_CAP] and bounds.power_cap_ppm > 0
    if throttled and not (declared and max(drops) <= bounds.power_cap_ppm):
        yield "gpu-throttle", ", ".join(throttled)
    ecc, xid = (_counted(window, name) for name in ("new_ecc_errors", "new_xid_errors"))
    if ecc + xid > 0:
        yield "gpu-error", f"{ecc} ECC, {xid} Xid"
    foreign = _counted(window, "foreign_processes")
    if foreign:
        yield "gpu-foreign", f"{foreign} compute processes not of the engine"


def _counted(window: WindowEnded, name: str) -> int:
    """A count of the GPU's facts; 0 where the host did not show it or the facts hold none."""
    return max(integer(part(window.facts, "gpu"), name) or 0, 0)


def _client(bounds: Bounds, window: WindowEnded) -> Iterator[tuple[str, str]]:
    report = window.report
    merged_ppm = report.merged * 1_000_000 // max(report.chunks, 1)
    for rule, got, bound in (
        ("client-lag", report.lag_p99_ns, bounds.client_lag_p99_ns),
        ("client-cpu", report.busiest_cpu_ppm, bounds.client_cpu_ppm),
        ("client-clock", report.clock_step_ns, bounds.clock_step_ns),
        ("merged", merged_ppm, bounds.merged_ppm),
        ("jit", len(window.jit_lines), 0),
        ("lost-requests", report.failed, 0),
        ("host-steal", window.steal_ppm, bounds.steal_ppm),
    ):
        if got > bound:
            yield rule, f"{got}, bound {bound}"


CHECK = Check(
    "validity",
    "A window beyond a bound of its plan is void, decided again from what was recorded.",
    (NOT_VOIDED, CONTRADICTED, ACCEPTANCE, UNWATCHED, GPU_FACTS),
    check,
    scope="meaning",
    kind="conduct",
)
