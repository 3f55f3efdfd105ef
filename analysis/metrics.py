"""The quantities of one usable window, each under its own name.

Invariant: throughput counts every token received inside the window; latency quantities come from
the completed requests that were not part of the ramp; goodput from all completed ones
(analysis/requests.py says why). Nothing here is called ITL.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from analysis.acceptance import Acceptance, Tally, acceptance, most_drafted, tally
from analysis.answers import Answers, answers_of, together, why_untold
from analysis.calibration import length_error_ns, relative_error, stamp_error_ns
from analysis.definitions import DEFINITIONS, ChunkColumns, Summary, definition
from analysis.facts import pace_ms
from analysis.goodput import QUANTITIES, Compliance, Goodput, compliance, goodput_of
from analysis.plan_order import place_of
from analysis.reading import Boot, MeasuredWindow, Run
from analysis.requests import RequestColumns
from analysis.streaming.summariser import Summariser
from records.errors import FormatError

# The kit's own quantities, in the order in which tables show them.
LATENCY_IDS = ("ttft.sent", "ttft.scheduled", "step-gap", "tpot.n-1", "tpot.n-k1", "ntpot")
_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class WindowMetrics:
    """Everything that tables show of one window of one boot.

    Rates in tokens and requests per second of the window's wall time; latency summaries in the
    unit of their definition. `answers`: to its prompts; None where prompts or sampling make any two
    windows differ (`analysis.answers.why_untold`). `place`: of arm and window in their plan.
    `length_error_ns`: by how much the window's length may err; inf where the run calibrated nothing
    at this concurrency. `pace_ms`: what a fixed piece of work took before and after it; empty in
    older records.
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
    answers: Answers | None
    place: tuple[int, int]
    length_error_ns: float
    pace_ms: tuple[float, ...] = ()

    @property
    def rate_error(self) -> float:
        """By how much a rate over the window errs at most, as a share of it."""
        return relative_error(self.length_error_ns, self.wall_ns)

    def latency_of(self, id_: str) -> Summary:
        """The summary of one of LATENCY_IDS."""
        return next(s for s in self.latency if s.id == id_)


def run_metrics(run: Run) -> list[WindowMetrics]:
    """The metrics of every usable window, in the order of the records."""
    return [
        window_metrics(run, boot, window) for boot in run.boots for window in boot.usable_windows
    ]


def peer_metrics(run: Run) -> list[WindowMetrics]:
    """The same of the windows that other clients measured, for the comparison of clients alone."""
    return [window_metrics(run, boot, window) for boot in run.boots for window in boot.peer_windows]


def window_metrics(run: Run, boot: Boot, measured: MeasuredWindow) -> WindowMetrics:
    """The metrics of one usable window. FormatError for one that is void or unfinished."""
    ended, planned = measured.ended, boot.planned
    if ended is None or planned is None or measured.void:
        raise FormatError(f"window {measured.window.id} of boot {boot.started.boot} is not usable")
    wall_ns, source = ended.report.wall_ns, measured.source
    if wall_ns <= 0:
        raise FormatError(
            f"window {measured.window.id} of boot {boot.started.boot} lasted {wall_ns} ns",
            "kit audit",
        )
    thresholds_ms = run.started.plan.thresholds_ms
    concurrency = measured.window.load.concurrency
    calibrated = [one for one in run.calibrations if one.concurrency == concurrency]
    looked_at = _LookedAt(
        wall_ns,
        most_drafted(run.started.plan.arm(planned.arm), ended.counters),
        # 0: what the prompts were answered with is not looked at.
        0 if why_untold(measured.window) else measured.window.prompts.count,
        thresholds_ms,
        stamp_error_ns(calibrated) if calibrated else math.inf,
    )
    latency = Summariser([definition(id_) for id_ in LATENCY_IDS])
    parts = []
    for requests in source.batches():
        steady = requests.for_latency
        latency.see(steady)
        parts.append(_part(requests, steady.requests, looked_at))
    seconds = wall_ns / _NS_PER_S
    return WindowMetrics(
        run.run_id,
        boot.started.boot,
        planned.arm,
        planned.block,
        planned.position,
        measured.window.id,
        concurrency,
        wall_ns,
        sum(part.requests for part in parts),
        sum(part.steady for part in parts),
        sum(part.ramp for part in parts),
        sum(part.tokens for part in parts) / seconds,
        sum(part.done for part in parts) / seconds,
        acceptance(reduce(Tally.plus, [part.tally for part in parts]), ended.counters),
        latency.summaries(lambda: (part.for_latency for part in source.batches())),
        tuple(
            result
            for index, quantity in enumerate(QUANTITIES)
            for result in goodput_of(
                reduce(Compliance.plus, [part.objectives[index] for part in parts]),
                wall_ns,
                quantity,
                thresholds_ms,
            )
        ),
        together(part.answers for part in parts) if looked_at.prompts else None,
        place_of(run.started.plan, planned.arm, measured.window.id),
        length_error_ns(looked_at.error_ns, wall_ns, max(part.last_ns for part in parts)),
        pace_ms(ended.facts),
    )


@dataclass(frozen=True, slots=True)
class _LookedAt:
    """What of a window's requests is looked at. `error_ns`: that of a stamp."""

    wall_ns: int
    drafted: int
    prompts: int
    thresholds_ms: tuple[int, ...]
    error_ns: float


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """What a batch of a window's requests adds; `objectives`: one for each of QUANTITIES.

    `last_ns`: the last stamp of the kernel's, since the window's start; 0 without one.
    """

    requests: int
    steady: int
    ramp: int
    done: int
    tokens: int
    tally: Tally
    objectives: tuple[Compliance, ...]
    answers: Answers
    last_ns: int


def _part(requests: RequestColumns, steady: int, at: _LookedAt) -> _Part:
    done = requests.for_goodput
    return _Part(
        len(requests),
        steady,
        int((requests.completed & requests.ramp).sum()),
        done.requests,
        received_tokens(requests, at.wall_ns),
        tally(requests, at.drafted),
        tuple(compliance(done, one, at.thresholds_ms, at.error_ns) for one in QUANTITIES),
        answers_of(requests, at.prompts) if at.prompts else Answers(),
        _last_ns(requests),
    )


def _last_ns(requests: RequestColumns) -> int:
    """A request that did not complete ended by the client's clock, or by nothing that came."""
    done = requests.completed
    ends = requests.scalars["sent_ns"][done] + requests.scalars["end_ns"][done]
    return max(int(ends.max(initial=0)), int(requests.chunks.chunk_ns.max(initial=0)))


def received_tokens(requests: RequestColumns, wall_ns: int) -> int:
    """Tokens received up to `wall_ns` after the window's start."""
    chunks = requests.chunks
    return int(chunks.chunk_tokens[chunks.chunk_ns <= wall_ns].sum())


def all_definitions(measured: MeasuredWindow) -> list[Summary]:
    """Every definition of the catalogue over the same requests, as the tools would print them."""

    def steady() -> Iterator[ChunkColumns]:
        return (part.for_latency for part in measured.source.batches())

    summariser = Summariser(DEFINITIONS)
    for columns in steady():
        summariser.see(columns)
    return list(summariser.summaries(steady))
