"""What voids a window: pure rules over what was recorded of it.

Invariant: a void window keeps all its records; voiding is a reason in a field, never a deletion.
Each reason is `<rule>: <words>`; the rule names are stable and listed in RULES.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from records.clock_reasons import POWER_CAP
from records.measurement import ClientReport
from records.plan import Bounds
from records.schema import Counters

RULES = (
    "jit",
    "client-lag",
    "client-cpu",
    "client-clock",
    "merged",
    "calibration",
    "lost-requests",
    "short-responses",
    "prefix-cache",
    "counters-disagree",
    "host-steal",
    "gpu-throttle",
    "gpu-error",
    "gpu-foreign",
)


@dataclass(frozen=True, slots=True)
class GpuSummary:
    """What the GPU did in a window, over all samples of all cards.

    `clock_drop_ppm`: the lowest SM clock below the highest, of the card at its power limit where
    that is most; 1,000,000 where a sample has none, 0 where no card is at its limit.
    """

    throttle_reasons: tuple[str, ...] = ()
    clock_drop_ppm: int = 0
    new_ecc_errors: int = 0
    new_xid_errors: int = 0
    foreign_processes: int = 0


@dataclass(frozen=True, slots=True)
class WindowEvidence:
    """All that the rules look at.

    `calibrated_p99_ns`: the error to reckon with (records.schema.Calibrated), -1 where this
    concurrency was not calibrated. `by_peer`: another client measured, whose own faults are what
    the window is for, so that no bound on the client voids it.
    """

    report: ClientReport
    counters: Counters
    client_tokens: int
    short_responses: int
    declared_prefix_cache: bool
    calibrated_p99_ns: int
    jit_lines: Sequence[str]
    steal_ppm: int
    gpu: GpuSummary
    by_peer: bool = False


def void_reasons(bounds: Bounds, seen: WindowEvidence) -> tuple[str, ...]:
    """Every reason why this window must not be used; empty where it may be."""
    client = () if seen.by_peer else _client_reasons(bounds, seen)
    return (*client, *_server_reasons(seen), *_host_reasons(bounds, seen))


def _client_reasons(bounds: Bounds, seen: WindowEvidence) -> Iterator[str]:
    report = seen.report
    if report.lag_p99_ns > bounds.client_lag_p99_ns:
        yield f"client-lag: p99 {report.lag_p99_ns} ns, bound {bounds.client_lag_p99_ns}"
    if report.busiest_cpu_ppm > bounds.client_cpu_ppm:
        yield f"client-cpu: {report.busiest_cpu_ppm} ppm of a core, bound {bounds.client_cpu_ppm}"
    if report.clock_step_ns > bounds.clock_step_ns:
        yield f"client-clock: moved {report.clock_step_ns} ns, bound {bounds.clock_step_ns}"
    merged_ppm = report.merged * 1_000_000 // max(report.chunks, 1)
    if merged_ppm > bounds.merged_ppm:
        yield f"merged: {merged_ppm} ppm of chunks shared a read, bound {bounds.merged_ppm}"
    if seen.calibrated_p99_ns < 0:
        yield "calibration: this concurrency was not calibrated"
    if seen.calibrated_p99_ns > bounds.calibrated_p99_ns:
        yield (f"calibration: error {seen.calibrated_p99_ns} ns, bound {bounds.calibrated_p99_ns}")


def _server_reasons(seen: WindowEvidence) -> Iterator[str]:
    report = seen.report
    if seen.jit_lines:
        yield f"jit: {len(seen.jit_lines)} kernels compiled in the window"
    if report.failed:
        yield f"lost-requests: {report.failed} of {report.planned} failed"
    if seen.short_responses:
        yield f"short-responses: {seen.short_responses} ended before the tokens asked for"
    if seen.counters.prefix_cache_hits > 0 and not seen.declared_prefix_cache:
        hits = seen.counters.prefix_cache_hits
        yield f"prefix-cache: {hits} tokens came from an undeclared cache"
    # Only where every request completed: a cancelled one is generated on after the client left.
    counted = seen.counters.generation_tokens
    if report.completed == report.planned and counted not in (-1, seen.client_tokens):
        yield (
            f"counters-disagree: server generated {counted} tokens, "
            f"client received {seen.client_tokens}"
        )


def _host_reasons(bounds: Bounds, seen: WindowEvidence) -> Iterator[str]:
    if seen.steal_ppm > bounds.steal_ppm:
        yield f"host-steal: {seen.steal_ppm} ppm of CPU time, bound {bounds.steal_ppm}"
    throttled, drop_ppm = seen.gpu.throttle_reasons, seen.gpu.clock_drop_ppm
    if throttled == (POWER_CAP,) and bounds.power_cap_ppm:
        if drop_ppm > bounds.power_cap_ppm:
            yield f"gpu-throttle: {POWER_CAP}, {drop_ppm} ppm, bound {bounds.power_cap_ppm}"
    elif throttled:
        yield f"gpu-throttle: {', '.join(throttled)}"
    if seen.gpu.new_ecc_errors + seen.gpu.new_xid_errors > 0:
        yield f"gpu-error: {seen.gpu.new_ecc_errors} ECC, {seen.gpu.new_xid_errors} Xid"
    if seen.gpu.foreign_processes:
        yield f"gpu-foreign: {seen.gpu.foreign_processes} compute processes not of the engine"
