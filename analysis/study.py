"""Runs of one plan as one study: what was carried out where, and which executions count.

Invariant: no boot counts twice, none is left out without a reason, and runs of different strata are
never pooled (analysis/comparing/stratum.py).

The rules, per stratum:

1. Of the attempts at a planned boot within a run the last one counts, if it completed. Earlier ones
   were interrupted; they are told.
2. A block was carried out where each of its boots completed or failed: a failure is an outcome.
3. A run of the whole plan is a repetition of it, and each block that it carried out counts. Fresh
   boots are replicates, on the same host as on another, and none may be picked: all count.
4. Runs that each took a share of the blocks (hosts that worked together, a block given out again
   after a host was lost) make up one repetition: a block that several of them carried out counts
   once, where it was begun first; the others are re-runs, shown and not counted.
5. A block that was cut off counts only if no run carried it out: then the one with the most
   completed boots, of equals the one begun first. A block is the unit that was randomised, so its
   parts are not put together from several hosts.
6. A run that was queued again may go on at another host, and each of its blocks belongs to the host
   of its boots. A block whose last attempts were made on several hosts never counts.
7. Of a run that was closed, its host being gone, only the blocks that it carried out count. One
   that it left open never does, not even where no run carried it out: who closes chooses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from analysis.claiming.reading import StudyRun
from analysis.comparing.stratum import Stratum, by_stratum
from analysis.not_begun import why_not
from records import schema
from records.errors import ForeignDirectoryError
from records.plan import Plan, PlannedBoot, boot_order

COUNTS = "counts"


class Attempt(Protocol):
    """One attempt at a boot; `planned` None: one outside the plan."""

    @property
    def started(self) -> schema.BootStarted: ...
    @property
    def planned(self) -> PlannedBoot | None: ...
    @property
    def decided(self) -> schema.EngineDecided | None: ...
    @property
    def outcome(self) -> str: ...
    @property
    def host_id(self) -> str: ...


class Carried(Protocol):
    """A run, as far as it matters to what of it counts, and in which stratum."""

    @property
    def started(self) -> schema.RunStarted: ...
    @property
    def host_id(self) -> str: ...
    @property
    def hosts(self) -> Sequence[schema.HostObserved]: ...
    @property
    def engines(self) -> Sequence[schema.EngineBound]: ...
    @property
    def boots(self) -> Sequence[Attempt]: ...
    @property
    def closed(self) -> schema.RunClosed | None: ...
    @property
    def left_out(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True)
class Execution:
    """One block as one run carried it out. `boots`: each planned boot with its attempts, in order.

    `host`: that of the last attempts, the run's own where none was begun; several, in order of id,
    with "and" between. `begun_ns`: CLOCK_REALTIME of the first attempt, 0 where none was begun.
    `why`: COUNTS, or why it does not. `moved`: several hosts share it. `gone`: the run was closed.
    `not_begun`: that none of its boots was begun, and why; "" where one was.
    """

    run: str
    host: str
    block: int
    shared: bool
    boots: tuple[tuple[PlannedBoot, tuple[Attempt, ...]], ...]
    begun_ns: int
    why: str = ""
    moved: bool = False
    gone: bool = False
    not_begun: str = ""

    @property
    def counts(self) -> bool:
        """Whether its completed boots enter the study."""
        return self.why == COUNTS

    @property
    def carried_out(self) -> bool:
        """Whether each planned boot came to an end of its own, all on one host."""
        return not self.moved and all(
            outcome_of(tries) in ("completed", "failed") for _, tries in self.boots
        )

    @property
    def completed(self) -> int:
        """How many of its boots completed."""
        return sum(outcome_of(tries) == "completed" for _, tries in self.boots)


@dataclass(frozen=True, slots=True)
class StudyStratum:
    """The runs of one plan in one stratum. `runs`: with nothing but what counts."""

    stratum: Stratum
    plan: Plan
    executions: tuple[Execution, ...]
    runs: tuple[StudyRun, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts with an execution that counts, in order of id."""
        return tuple(sorted({one.host for one in self.executions if one.counts}))

    @property
    def told(self) -> str:
        """The stratum in words, and which of the runs that count were closed."""
        return f"{self.stratum}{closed_note(self.closed)}"

    @property
    def closed(self) -> tuple[str, ...]:
        """The runs that count and were closed, their hosts being gone."""
        return tuple(run.run_id for run in self.runs if run.closed is not None)


def closed_note(runs: Iterable[str]) -> str:
    """What is said wherever something rests on runs that were closed; "" for none."""
    named = ", ".join(sorted(runs))
    return f"; {schema.RunClosed.WORD}: {named}" if named else ""


def outcomes(study: StudyStratum) -> dict[PlannedBoot, tuple[str, tuple[Execution, ...]]]:
    """Each planned boot with the executions that count, and what came of it at best.

    "completed" where it is so in any of them; else "failed", "missing".
    """
    found: dict[PlannedBoot, list[tuple[str, Execution]]] = {
        planned: [] for planned in boot_order(study.plan)
    }
    for one in study.executions:
        for planned, tries in one.boots if one.counts else ():
            found[planned].append((outcome_of(tries), one))
    return {
        planned: (_best(ends), tuple(one for _, one in ends)) for planned, ends in found.items()
    }


def _best(ends: Sequence[tuple[str, Execution]]) -> str:
    names = {name for name, _ in ends}
    return next((name for name in ("completed", "failed") if name in names), "missing")


def merge(runs: Iterable[StudyRun]) -> tuple[StudyStratum, ...]:
    """Runs as studies, one a stratum, in order of plan and stratum.

    ForeignDirectoryError: two of them are the same run, which is no replicate of itself.
    """
    given = list(runs)
    ids = [run.run_id for run in given]
    twice = sorted({run_id for run_id in ids if ids.count(run_id) > 1}) if _repeat(ids) else []
    if twice:
        raise ForeignDirectoryError(
            f"run {', '.join(twice)} is named more than once", "name each run once"
        )
    return tuple(_stratum(stratum, group) for stratum, group in by_stratum(given))


def outcome_of(attempts: Sequence[Attempt]) -> str:
    """The outcome of the last attempt; "missing" where there was none."""
    return attempts[-1].outcome if attempts else "missing"


def _repeat(ids: Sequence[str]) -> bool:
    return len(set(ids)) < len(ids)


def _stratum(stratum: Stratum, runs: Sequence[StudyRun]) -> StudyStratum:
    executions = judged(runs)
    return StudyStratum(stratum, runs[0].plan, executions, tuple(_counted(runs, executions)))


def judged(runs: Iterable[Carried]) -> tuple[Execution, ...]:
    """The executions of all blocks by runs of one stratum, each with COUNTS or why not.

    In order of block, then of beginning.
    """
    blocks: dict[int, list[Execution]] = {}
    for run in runs:
        for execution in _executions(run):
            blocks.setdefault(execution.block, []).append(execution)
    return tuple(one for block in sorted(blocks) for one in _judged(blocks[block]))


def _executions(run: Carried) -> Iterator[Execution]:
    attempts: dict[str, list[Attempt]] = {}
    for boot in run.boots:
        if boot.planned is not None:
            attempts.setdefault(boot.planned.id, []).append(boot)
    blocks: dict[int, list[PlannedBoot]] = {}
    for planned in boot_order(run.started.plan, run.started.blocks):
        blocks.setdefault(planned.block, []).append(planned)
    shared = bool(run.started.blocks)
    for block, order in blocks.items():
        boots = tuple((planned, tuple(attempts.get(planned.id, ()))) for planned in order)
        begun = [tries[0].started.clock.realtime_ns for _, tries in boots if tries]
        hosts = sorted({tries[-1].host_id for _, tries in boots if tries}) or [run.host_id]
        yield Execution(
            run.started.run_id,
            " and ".join(hosts),
            block,
            shared,
            boots,
            min(begun, default=0),
            moved=len(hosts) > 1,
            gone=run.closed is not None,
            not_begun="" if begun else ": ".join(filter(None, ("not begun", why_not(run, block)))),
        )


def _judged(executions: Sequence[Execution]) -> Iterator[Execution]:
    """The executions of one block, each with COUNTS or why not, in order of beginning."""
    order = sorted(executions, key=lambda one: (one.begun_ns, one.run))
    whole = [one for one in order if one.carried_out]
    first_share = next((one for one in whole if one.shared), None)
    fullest = max(order, key=lambda one: -1 if one.moved or one.gone else one.completed)
    for one in order:
        if one.moved:
            why = f"moved on the way: its boots are of hosts {one.host}"
        elif one.carried_out and (not one.shared or one is first_share):
            why = COUNTS
        elif one.carried_out and first_share is not None:
            why = f"re-run: run {first_share.run} carried it out first"
        elif one.not_begun:
            why = one.not_begun
        elif whole:
            why = f"cut off: run {whole[0].run} carried it out"
        elif one.completed == 0:
            why = "cut off before a boot completed"
        elif one.gone:
            why = "cut off: its host went away for good"
        elif one is fullest:
            why = COUNTS
        else:
            why = f"cut off: run {fullest.run} came further"
        yield replace(one, why=why)


def _counted(runs: Sequence[StudyRun], judged: Sequence[Execution]) -> Iterator[StudyRun]:
    """The runs with the boots and windows of what counts; a run of which nothing counts is gone."""
    counted: dict[str, set[str]] = {}
    for one in judged:
        if one.counts:
            boots = [tries[-1].started.boot for _, tries in one.boots if tries]
            counted.setdefault(one.run, set()).update(boots)
    for run in runs:
        boots_of_run = counted.get(run.run_id, set())
        if boots_of_run:
            yield replace(
                run,
                metrics=tuple(m for m in run.metrics if m.boot in boots_of_run),
                boots=tuple(b for b in run.boots if b.started.boot in boots_of_run),
            )
