"""The quantities of one usable window, each under its own name.

Invariant: throughput counts every token received inside the window; latency quantities come from
the completed requests that were not part of the ramp; goodput from all completed ones
(analysis/requests.py says why). Nothing here is called ITL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from analysis.acceptance import Acceptance, Tally, accepted, drafted_tokens, tally
from analysis.answers import Answers, answers_of, together, why_untold
from analysis.definitions import DEFINITIONS, ChunkColumns, Summary, definition
from analysis.goodput import QUANTITIES, Goodput, goodput_of, per_request
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
    drafted = drafted_tokens(run.started.plan.arm(planned.arm), ended.counters)
    latency = Summariser([definition(id_) for id_ in LATENCY_IDS])
    # 0: what the prompts were answered with is not looked at.
    prompts = 0 if why_untold(measured.window) else measured.window.prompts.count
    parts = []
    for requests in source.batches():
        steady = requests.for_latency
        latency.see(steady)
        parts.append(_part(requests, steady.requests, wall_ns, drafted, prompts))
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
        sum(part.requests for part in parts),
        sum(part.steady for part in parts),
        sum(part.ramp for part in parts),
        sum(part.tokens for part in parts) / seconds,
        sum(part.done for part in parts) / seconds,
        accepted(reduce(Tally.plus, [part.tally for part in parts]), ended.counters),
        latency.summaries(lambda: (part.for_latency for part in source.batches())),
        tuple(
            result
            for index, quantity in enumerate(QUANTITIES)
            for result in goodput_of(
                np.concatenate([part.objectives[index] for part in parts]),
                wall_ns,
                quantity,
                run.started.plan.thresholds_ms,
            )
        ),
        together(part.answers for part in parts) if prompts else None,
        place_of(run.started.plan, planned.arm, measured.window.id),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """What a batch of a window's requests adds; `objectives`: per request, one for a QUANTITY."""

    requests: int
    steady: int
    ramp: int
    done: int
    tokens: int
    tally: Tally
    objectives: tuple[NDArray[np.float64], ...]
    answers: Answers


def _part(requests: RequestColumns, steady: int, wall_ns: int, drafted: int, prompts: int) -> _Part:
    done = requests.for_goodput
    return _Part(
        len(requests),
        steady,
        int((requests.completed & requests.ramp).sum()),
        done.requests,
        received_tokens(requests, wall_ns),
        tally(requests, drafted),
        tuple(per_request(done, quantity) for quantity in QUANTITIES),
        answers_of(requests, prompts) if prompts else Answers(),
    )


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
