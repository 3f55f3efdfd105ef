"""What each boot adds to a claim: its own value of what the claim is a statistic of.

Invariant: values come from the claim's own measure, or from its own function over the records of
one boot alone; where neither is of one boot there is none, and none is made up.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from analysis.claiming.claim import Claim, Result, Value
from analysis.claiming.quantities import Measure, acceptance_length, p95_ms, throughput
from analysis.claiming.reading import BootRecord, Reading, StudyRun
from analysis.definitions import definition
from analysis.metrics import WindowMetrics
from analysis.plan_order import PlanOrder
from analysis.table import number
from records.errors import ClaimError


@dataclass(frozen=True, slots=True)
class BootValue:
    """One boot's value, as printed, unit included. `windows`: those that it was taken from."""

    run: str
    host: str
    block: int
    boot: str
    arm: str
    windows: tuple[str, ...]
    printed: str
    value: Result


@dataclass(frozen=True, slots=True)
class _Shown:
    """A measure of one window, what it is called, its unit and decimals."""

    name: str
    of: Callable[[WindowMetrics], Result]
    unit: str
    digits: int

    def printed(self, value: Result) -> str:
        text = value if isinstance(value, str) else number(value, self.digits)
        return f"{text} {self.unit}".strip()


def values_by_boot(value: Value, runs: Mapping[str, StudyRun]) -> tuple[str, tuple[BootValue, ...]]:
    """What is told of each boot, in words, and the boots: by arm, host, block.

    `runs`: those that the claim was evaluated over, by id. Nothing for a claim that is of no boot
    (a calibration), or of all of them together (in how many answers two arms agree).
    """
    shown = _measure(value.claim)
    if shown is not None:
        found = list(_measured(value, runs, shown))
        name = f"{shown.name}, {shown.unit}" if shown.unit else shown.name
    else:
        found = list(_alone(value, runs))
        name = value.claim.text.removeprefix("mean over boots of ").removeprefix(
            "median over boots of "
        )
    order = PlanOrder(runs[run].plan for run in value.runs)
    found.sort(
        key=lambda one: (order.arm(one.arm), one.windows, one.host, one.run, one.block, one.boot)
    )
    return (name if found else ""), tuple(found)


def summary(boots: Sequence[BootValue]) -> tuple[str, ...]:
    """For each arm and window with several boots: how many, the least, the median, the greatest."""
    groups: dict[tuple[str, tuple[str, ...]], list[BootValue]] = {}
    for one in boots:
        groups.setdefault((one.arm, one.windows), []).append(one)
    told = []
    for (arm, windows), group in groups.items():
        numbers = [one for one in group if not isinstance(one.value, str)]
        if len(numbers) < 2 or len(numbers) < len(group):
            continue
        ordered = sorted(numbers, key=lambda one: one.value)
        digits = len(ordered[0].printed.partition(" ")[0].partition(".")[2])
        middle = statistics.median(float(one.value) for one in ordered)
        where = " ".join((arm, *windows))
        told.append(
            f"{where}: {len(group)} boots, least {ordered[0].printed}, "
            f"median {number(middle, digits)}, greatest {ordered[-1].printed}"
        )
    return tuple(told)


def _measure(claim: Claim) -> _Shown | None:
    """The measure that is bound in the claim's function, or that the function takes by itself."""
    function = claim.function
    if not isinstance(function, partial):
        return None
    for one in function.args:
        if callable(one):
            return _known(one)
    taken = _TAKEN.get(function.func.__name__)
    return taken(function.args) if taken else None


def _known(measure: Measure) -> _Shown | None:
    if measure is throughput:
        return _THROUGHPUT
    if measure is acceptance_length:
        return _Shown("acceptance length", acceptance_length, "tokens/step", 4)
    if isinstance(measure, partial) and measure.func is p95_ms:
        return _p95(measure.args)
    return None


def _p95(args: Sequence[Any]) -> _Shown:
    one = definition(args[0])
    return _Shown(f"p95 {one.quantity}", partial(p95_ms, args[0]), one.unit, 2)


def _goodput(args: Sequence[Any]) -> _Shown:
    """The most goodput over one threshold or several: `args` as of the ranking functions."""
    quantity, at = args[:2]
    thresholds = (at,) if isinstance(at, int) else tuple(at)

    def most(window: WindowMetrics) -> float:
        return max(
            one.per_second
            for one in window.goodput
            if one.quantity == quantity and round(one.threshold_ms) in thresholds
        )

    listed = ", ".join(map(str, thresholds))
    which = "goodput" if len(thresholds) == 1 else "most goodput"
    return _Shown(f"{which}, {quantity} of at most {listed} ms", most, "req/s", 3)


def _counted(_args: Sequence[Any]) -> _Shown:
    def counts(window: WindowMetrics) -> str:
        found = window.acceptance
        return f"{found.drafts} drafts, {found.accepted_server} accepted"

    return _Shown("what the server counted", counts, "", 0)


_THROUGHPUT = _Shown("output throughput", throughput, "tok/s", 2)
# Functions that take their measure without its being bound in them, by name.
_TAKEN: dict[str, Callable[[Sequence[Any]], _Shown]] = {
    "p95_difference_ms": _p95,
    "least_p95": _p95,
    "fastest": lambda _: _THROUGHPUT,
    "thresholds_lost": lambda _: _THROUGHPUT,
    "boots_to_find": lambda _: _THROUGHPUT,
    "boots_to_repeat": lambda _: _THROUGHPUT,
    "most_goodput": _goodput,
    "goodput_of_fastest": _goodput,
    "distinct_acceptances": _counted,
}


def _measured(value: Value, runs: Mapping[str, StudyRun], shown: _Shown) -> Iterator[BootValue]:
    metrics = {(m.run_id, m.boot, m.window): m for run in value.runs for m in runs[run].metrics}
    boots = {(run, b.started.boot): b for run in value.runs for b in runs[run].boots}
    for use in value.measured:
        run, boot = runs[use.run], boots[use.run, use.boot]
        found = shown.of(metrics[use.run, use.boot, use.window])
        yield _of(run, boot, (use.window,), shown.printed(found), found)


def _alone(value: Value, runs: Mapping[str, StudyRun]) -> Iterator[BootValue]:
    """The claim's function over one boot at a time, of those whose lines it read."""
    read = {(line.run, line.seq) for line in value.lines}
    for run_id in value.runs:
        run = runs[run_id]
        named = {
            name for (name, _), seqs in run.lines.boots.items()
            if any((run_id, seq) in read for seq in seqs)
        }  # fmt: skip
        for boot in run.boots:
            name = boot.started.boot
            if boot.cut_off or name not in named:
                continue
            only = replace(
                run,
                boots=(boot,),
                metrics=tuple(one for one in run.metrics if one.boot == name),
                peers=tuple(one for one in run.peers if one.boot == name),
                clocks=tuple(one for one in run.clocks if one.boot == name),
            )
            reading = Reading(value.claim.study, (only,))
            try:
                found = value.claim.function(reading)
            except ClaimError:  # it takes more than a boot
                continue
            windows = tuple(dict.fromkeys(use.window for use in reading.measured))
            yield _of(run, boot, windows, value.claim.printed(found), found)


def _of(
    run: StudyRun, boot: BootRecord, windows: tuple[str, ...], printed: str, value: Result
) -> BootValue:
    return BootValue(
        run.run_id,
        boot.host_id,
        boot.planned.block,
        boot.started.boot,
        boot.planned.arm,
        windows,
        printed,
        value,
    )
