"""What a run's time went to: from its first event to its last, each second in one place.

Invariant: the parts add up to the whole; an interval belongs to what it was spent on, told by the
event that ends it. Times are CLOCK_MONOTONIC and do not hold across a restart of the host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from records import schema
from records.schema import Envelope

MEASURED = "measured: requests under way"
# What is not measured, in the order in which a run meets it; with what would make less of it.
PARTS: dict[str, str] = {
    "binding": "",
    "calibration": "fewer concurrencies, fewer tokens",
    "first boots": "a cache filled before the run: carried here, or by another plan",
    "start of the engine": "fewer, longer boots",
    "warm-up": "shorter requests, fewer windows",
    MEASURED: "",
    "around windows": "fewer, longer windows",
    "stop of the engine": "fewer, longer boots",
    "not running": "",
    "the rest": "",
}
_BY_EVENT: dict[type, str] = {
    schema.HostObserved: "binding",
    schema.EngineBound: "binding",
    schema.ModelBound: "binding",
    schema.Calibrated: "calibration",
    schema.BootStarted: "the rest",
    schema.BootHealthy: "start of the engine",
    schema.BootWarmed: "warm-up",
    schema.EngineDecided: "warm-up",
    schema.WindowStarted: "around windows",
    schema.WindowRequests: "around windows",
    schema.WindowEnded: "around windows",
    schema.BootEnded: "stop of the engine",
    schema.RunResumed: "not running",
    schema.JournalRepaired: "not running",
}
_NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a run's time. `share`: of the whole, 0 to 1; `less`: what makes less of it."""

    what: str
    seconds: float
    share: float
    less: str


def minutes(envelopes: Iterable[Envelope]) -> tuple[Part, ...]:
    """The parts of a run's time, in the order of PARTS; those that took none are left out.

    Within the wall time of a window's load the client measured; what a window takes besides,
    settling counters and building the records, stands around it. A boot that fills a cache is one
    part from its start to its end.
    """
    spent_ns = dict.fromkeys(PARTS, 0)
    before_ns: int | None = None
    priming = ""
    for envelope in envelopes:
        event, took_ns = envelope.event, envelope.t_ns - (before_ns or envelope.t_ns)
        before_ns = envelope.t_ns
        if priming:
            spent_ns["first boots"] += took_ns
        else:
            spent_ns[_BY_EVENT.get(type(event), "the rest")] += took_ns
        if isinstance(event, schema.BootStarted):
            priming = "" if event.planned else event.boot
        elif isinstance(event, schema.BootEnded) and event.boot == priming:
            priming = ""
        elif isinstance(event, schema.WindowEnded):
            measured_ns = event.report.wall_ns
            spent_ns[MEASURED] += measured_ns
            spent_ns["around windows"] -= measured_ns
    whole_ns = max(sum(spent_ns.values()), 1)
    return tuple(
        Part(what, ns / _NS_PER_S, ns / whole_ns, PARTS[what])
        for what, ns in spent_ns.items()
        if ns
    )
