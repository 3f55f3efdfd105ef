"""What the engine's busiest thread did over the windows of each arm: ran, waited, moved.

Invariant: the times are the guest kernel's own, from before and after each window; windows of
records from before they were read have no place in it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.facts import integer, integers, part
from analysis.plan_order import PlanOrder
from analysis.reading import MeasuredWindow, Run
from analysis.table import Column, Table, number, words

_NOTES = (
    (
        "The thread of the engine that had most time on a processor in a window: how much of the "
        "window it ran, how much of it it waited for a processor, medians over windows."
    ),
    (
        "A thread that runs all the while, waits for nothing and yet does half the work was slowed "
        "from outside of the guest: its processor's core, or its host, did something else as well."
    ),
    "Moved: windows after which it had last run on another processor than before.",
)


@dataclass(frozen=True, slots=True)
class _Did:
    """One window's: shares of its length."""

    ran: float
    waited: float
    moved: bool


def thread_table(runs: Sequence[Run]) -> tuple[Table, ...]:
    """One row an arm and window of a run; none where no run recorded it."""
    order = PlanOrder(run.started.plan for run in runs)
    seen: dict[tuple[str, str, str], list[_Did]] = {}
    for run in runs:
        for boot in run.boots:
            for window in boot.windows:
                did = _did(window)
                if did is not None and boot.planned is not None:
                    key = (run.run_id, boot.started.arm, window.window.id)
                    seen.setdefault(key, []).append(did)
    if not seen:
        return ()
    rows = [
        (
            *key,
            str(len(found)),
            number(100 * statistics.median(one.ran for one in found), 1),
            number(100 * min(one.ran for one in found), 1),
            number(100 * statistics.median(one.waited for one in found), 2),
            number(100 * max(one.waited for one in found), 2),
            str(sum(one.moved for one in found)),
        )
        for key, found in sorted(
            seen.items(), key=lambda one: (one[0][0], order.arm(one[0][1]), order.window(one[0][2]))
        )
    ]
    columns = (
        *words("run", "arm", "window"),
        Column("windows"),
        *[Column(name, "%") for name in ("ran", "ran, least", "waited", "waited, most")],
        Column("moved"),
    )
    title = "What the engine's busiest thread did"
    return (Table("busiest-thread", title, _NOTES, columns, tuple(rows)),)


def _did(window: MeasuredWindow) -> _Did | None:
    if window.ended is None:
        return None
    facts = part(window.ended.facts, "busiest_thread")
    length_ns = integer(part(window.ended.facts, "host"), "duration_ns")
    ran_ns, waited_ns = integer(facts, "on_cpu_ns"), integer(facts, "waiting_ns")
    processors = integers(facts, "processors")
    if not length_ns or ran_ns is None or waited_ns is None or len(processors) != 2:
        return None
    return _Did(ran_ns / length_ns, waited_ns / length_ns, processors[0] != processors[1])
