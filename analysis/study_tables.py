"""The tables of a study of several runs: what was carried out where, what counts, and its hosts.

Invariant: every planned boot of a block that counts has a row in each stratum, all others are named
below; every execution that was begun and does not count, or took more than one attempt, has a row
that says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from analysis.claiming.reading import StudyRun
from analysis.not_begun import named as blocks_named
from analysis.publish import Study
from analysis.statistics.nested import NestedEffects
from analysis.study import Execution, StudyStratum, closed_note, merge, outcome_of, outcomes
from analysis.study_boots import boots_by_host
from analysis.study_hosts import MEASURES, Effects, host_effects, host_means
from analysis.table import MISSING, Column, Table, number, words
from records.plan import boot_order

_SHOWN = 3
_NS_PER_S = 1_000_000_000


def study_of_runs(runs: Sequence[StudyRun]) -> list[Study]:
    """One study for each plan that several of these runs carried out.

    Errors: as `analysis.study.merge`.
    """
    by_plan: dict[str, list[StudyRun]] = {}
    for run in runs:
        by_plan.setdefault(run.plan.id, []).append(run)
    return [
        Study(
            f"study-{plan}",
            tuple(sorted(run.run_id for run in group)),
            (boots_by_host(group), *merged_tables(merge(group))),
        )
        for plan, group in sorted(by_plan.items())
        if len(group) > 1
    ]


def merged_tables(strata: Sequence[StudyStratum]) -> list[Table]:
    """study, re-runs, hosts, host-effects: over the strata of one plan, each named by a letter."""
    named = [(letter(place), stratum) for place, stratum in enumerate(strata)]
    notes = tuple(f"Stratum {name}: {_told(stratum)}" for name, stratum in named)
    return [
        _study(named, notes),
        _reruns(named, notes),
        _hosts(named, notes),
        _effects(named, notes),
    ]


def _study(named: Sequence[tuple[str, StudyStratum]], notes: tuple[str, ...]) -> Table:
    rows = []
    for name, study in named:
        counting = {one.block for one in study.executions if one.counts}
        for planned, (outcome, counted) in outcomes(study).items():
            if planned.block not in counting:
                continue
            ended = [outcome_of(dict(one.boots)[planned]) for one in counted]
            rows.append(
                (
                    name,
                    str(planned.block),
                    planned.arm,
                    planned.id,
                    outcome,
                    str(ended.count("completed")),
                    str(ended.count("failed")),
                    _some({one.host for one in counted}),
                    _some({one.run for one in counted}),
                )
            )
    return Table(
        "study",
        "What was carried out of the plan, by block and arm",
        (
            *notes,
            *(told for name, study in named for told in _uncounted(name, study)),
            (
                "Outcome: completed where the boot completed in an execution that counts; else "
                "failed, or missing: no execution that counts came so far."
            ),
            (
                "Completed, failed: how often, over repetitions of the plan. Which executions "
                "count is told in analysis/study.py; those that do not stand among the re-runs."
            ),
        ),
        (
            *words("stratum"),
            Column("block"),
            *words("arm", "boot", "outcome"),
            Column("completed"),
            Column("failed"),
            *words("hosts", "runs"),
        ),
        tuple(rows),
    )


def _reruns(named: Sequence[tuple[str, StudyStratum]], notes: tuple[str, ...]) -> Table:
    rows = [
        (
            name,
            str(one.block),
            one.run,
            one.host,
            _day(one.begun_ns),
            str(one.completed),
            str(len(one.boots)),
            str(sum(len(tries) for _, tries in one.boots)),
            "yes" if one.counts else "no",
            _why(one),
        )
        for name, study in named
        for one in study.executions
        if not (one.counts or one.not_begun) or any(len(tries) > 1 for _, tries in one.boots)
    ]
    return Table(
        "re-runs",
        "Blocks that were carried out again, cut off, or took more than one attempt",
        (
            *notes,
            (
                "A run of the whole plan repeats it, and counts. Of runs that each took a share of "
                "the blocks, the first that carried a block out counts; the others do not."
            ),
        ),
        (
            *words("stratum"),
            Column("block"),
            *words("run", "host", "begun (UTC)"),
            Column("completed"),
            Column("planned"),
            Column("attempts"),
            *words("counts", "why"),
        ),
        tuple(rows),
    )


def _hosts(named: Sequence[tuple[str, StudyStratum]], notes: tuple[str, ...]) -> Table:
    rows = [
        (
            name,
            one.arm,
            one.window,
            one.host,
            str(one.boots),
            number(one.mean, 2),
            number(one.against_others, 4),
            number(one.p, 5),
            "yes" if one.outlier else "no" if one.p is not None else MISSING,
        )
        for name, study in named
        for one in host_means(study)
    ]
    return Table(
        "hosts",
        "Throughput by host",
        (
            *notes,
            "Against others: mean over the geometric mean of the other hosts' means.",
            (
                "p: a host against the others (Grubbs 1969), adjusted for all rows of its stratum "
                "(Holm 1979); an outlier where it is at most 0.05. Three hosts are the least."
            ),
        ),
        (
            *words("stratum", "arm", "window", "host"),
            Column("boots"),
            Column("output, mean", "tok/s"),
            Column("against others"),
            Column("p adjusted"),
            *words("outlier"),
        ),
        tuple(rows),
    )


def _effects(named: Sequence[tuple[str, StudyStratum]], notes: tuple[str, ...]) -> Table:
    of_strata = [(name, host_effects(study)) for name, study in named]
    rows = [
        (name, *_effect(one, one.found))
        for name, effects in of_strata
        for one in effects
        if one.found is not None
    ]
    return Table(
        "host-effects",
        "How much of the spread belongs to hosts, how much to their boots",
        (
            *notes,
            (
                "One-way random effects, boots within hosts, 95 % intervals "
                "(analysis/statistics/nested.py); SDs in percent of the mean. Below six hosts "
                "the host SD describes these hosts and says little of others."
            ),
            *(told for name, effects in of_strata for told in _without_effects(name, effects)),
        ),
        (
            *words("stratum", "arm", "window", "quantity", "unit"),
            Column("hosts"),
            Column("boots"),
            Column("mean"),
            *[Column(f"boot SD{end}", "%") for end in ("", " low", " high")],
            *[Column(f"host SD{end}", "%") for end in ("", " low", " high")],
            Column("host share", "%"),
            Column("p of no host effect"),
            *words("note"),
        ),
        tuple(rows),
    )


def _without_effects(name: str, effects: Sequence[Effects]) -> Iterator[str]:
    """What has no components, once for each reason."""
    whys: dict[str, dict[str, list[str]]] = {}
    for one in effects:
        if one.found is None:
            cells = whys.setdefault(one.problem, {})
            cells.setdefault(f"{one.arm} {one.window}", []).append(one.quantity)
    for why, cells in whys.items():
        parts = [
            cell if len(quantities) == len(MEASURES) else f"{cell} ({', '.join(quantities)})"
            for cell, quantities in cells.items()
        ]
        yield f"Stratum {name}, without a row since {why}: {', '.join(parts)}."


def _effect(one: Effects, found: NestedEffects) -> Iterator[str]:
    yield from (one.arm, one.window, one.quantity, one.unit, str(one.hosts), str(one.boots))
    mean = found.grand_mean
    yield number(mean, 3)
    for sd in (found.boot, found.host):
        yield from (number(100 * value / mean, 2) for value in (sd.sd, sd.low, sd.high))
    yield number(100 * found.host_share, 1)
    yield number(found.p_host, 5)
    yield "descriptive: few hosts" if found.descriptive else ""


def _told(study: StudyStratum) -> str:
    ended = [outcome for outcome, _ in outcomes(study).values()]
    counts = ", ".join(f"{ended.count(name)} {name}" for name in ("completed", "failed", "missing"))
    again = sum(not (one.counts or one.not_begun) for one in study.executions)
    hosts = "1 host" if len(study.hosts) == 1 else f"{len(study.hosts)} hosts"
    unused = "1 execution of a block does" if again == 1 else f"{again} executions of a block do"
    return (
        f"{study.stratum}{closed_note({one.run for one in study.executions if one.gone})}; "
        f"engine {study.stratum.binding}; plan {study.stratum.plan_digest}; "
        f"harness {study.stratum.harness}; {hosts}; of {len(ended)} planned boots "
        f"{counts}; {unused} not count."
    )


def _uncounted(name: str, study: StudyStratum) -> Iterator[str]:
    """The blocks of which nothing counts so far, and what became of them in which run."""
    counting = {one.block for one in study.executions if one.counts}
    lacking = set(range(1, study.plan.blocks + 1)) - counting
    if not lacking:
        return
    whys: dict[tuple[str, str], set[int]] = {}
    for one in study.executions:
        if one.block in lacking:
            whys.setdefault((one.run, one.why), set()).add(one.block)
    nowhere = lacking.difference(*whys.values())
    parts = [f"{blocks_named(blocks)} of run {run}, {why}" for (run, why), blocks in whys.items()]
    if len(parts) > _SHOWN:
        parts = [*parts[:_SHOWN], f"and {len(parts) - _SHOWN} more such"]
    parts += [f"{blocks_named(nowhere)} of none of these runs"] if nowhere else []
    boots = sum(boot.block in lacking for boot in boot_order(study.plan))
    yield (
        f"Stratum {name}, missing so far and without a row: {blocks_named(lacking)}, with {boots} "
        f"boots: {'; '.join(parts)}."
    )


def _why(one: Execution) -> str:
    if not one.counts:
        return one.why
    several = [planned.id for planned, tries in one.boots if len(tries) > 1]
    return f"the last attempt counts: {', '.join(several)}"


def _day(begun_ns: int) -> str:
    if not begun_ns:
        return MISSING
    return datetime.fromtimestamp(begun_ns // _NS_PER_S, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _some(names: Iterable[str]) -> str:
    """The first few by name, and how many more there are."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return (", ".join(ordered[:_SHOWN]) + more) or MISSING


def letter(place: int) -> str:
    """A, B, …, Z, A1, B1, …"""
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[place % 26] + (str(place // 26) if place >= 26 else "")
