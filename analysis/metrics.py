"""The quantities of one usable window, each under its own name.

Invariant: throughput counts every token received inside the window; latency quantities come from
the completed requests that were not part of the ramp; goodput from all completed ones
(analysis/requests.py says why). Nothing here is called ITL.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.acceptance import Acceptance, acceptance, drafted_tokens
from analysis.definitions import DEFINITIONS, Summary, definition, summarise
from analysis.goodput import QUANTITIES, Goodput, goodput_row
from analysis.reading import Boot, MeasuredWindow, Run
from records.errors import FormatError

# The kit's own quantities, in the order in which tables show them.
LATENCY_IDS = ("ttft.sent", "ttft.scheduled", "step-gap", "tpot.n-1", "tpot.n-k1", "ntpot")
_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class WindowMetrics:
    """Everything that tables show of one window of one boot.

    Rates in tokens and requests per second of the window's wall time; latency summaries in the
    unit of their definition.
    """

    run_id: str
    boot: str
    arm: str
    block: int
    position: int
    window: str
    concurrency: int
    wall_ns: int
    requests: int
    latency_requests: int
    ramp_requests: int
    output_tokens_per_s: float
    requests_per_s: float
    acceptance: Acceptance
    latency: tuple[Summary, ...]
    goodput: tuple[Goodput, ...]

    def latency_of(self, id_: str) -> Summary:
        """The summary of one of LATENCY_IDS."""
        return next(s for s in self.latency if s.id == id_)


def run_metrics(run: Run) -> list[WindowMetrics]:
    """The metrics of every usable window, in the order of the records."""
    return [
        window_metrics(run, boot, window) for boot in run.boots for window in boot.usable_windows
    ]


def window_metrics(run: Run, boot: Boot, measured: MeasuredWindow) -> WindowMetrics:
    """The metrics of one usable window. FormatError for one that is void or unfinished."""
    ended, planned = measured.ended, boot.planned
    if ended is None or planned is None or measured.void:
        raise FormatError(f"window {measured.window.id} of boot {boot.started.boot} is not usable")
    requests, wall_ns = measured.requests, ended.report.wall_ns
    steady = requests.for_latency
    done = requests.for_goodput
    seconds = wall_ns / _NS_PER_S
    return WindowMetrics(
        run.run_id,
        boot.started.boot,
        planned.arm,
        planned.block,
        planned.position,
        measured.window.id,
        measured.window.load.concurrency,
        wall_ns,
        len(requests),
        steady.requests,
        int((requests.completed & requests.ramp).sum()),
        received_tokens(measured, wall_ns) / seconds,
        done.requests / seconds,
        acceptance(
            requests,
            ended.counters,
            drafted_tokens(run.started.plan.arm(planned.arm), ended.counters),
        ),
        tuple(summarise(definition(id_), steady) for id_ in LATENCY_IDS),
        tuple(
            result
            for quantity in QUANTITIES
            for result in goodput_row(done, wall_ns, quantity, run.started.plan.thresholds_ms)
        ),
    )


def received_tokens(measured: MeasuredWindow, wall_ns: int) -> int:
    """Tokens received up to `wall_ns` after the window's start, of all requests."""
    chunks = measured.requests.chunks
    return int(chunks.chunk_tokens[chunks.chunk_ns <= wall_ns].sum())


def all_definitions(measured: MeasuredWindow) -> list[Summary]:
    """Every definition of the catalogue over the same requests, as the tools would print them."""
    steady = measured.requests.for_latency
    return [summarise(one, steady) for one in DEFINITIONS]
