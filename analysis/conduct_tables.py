"""Tables of how a study went: decisions, boots, void windows, calibration.

Invariant: every boot that was started and every window that was begun is counted somewhere here.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis.facts import pace_ms
from analysis.not_begun import not_begun
from analysis.plan_order import PlanOrder
from analysis.reading import Boot, Run
from analysis.table import MISSING, Column, Table, number, words
from records.plan import boot_order
from records.void_words import reason_text

_DECISIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("target backend", ("target", "backend")),
    ("chosen", ("target", "chosen")),
    ("target FlashAttention", ("target", "flash_attention_version")),
    ("target KV dtype", ("target", "kv_cache_dtype")),
    ("draft backend", ("draft", "backend")),
    ("draft KV dtype", ("draft", "kv_cache_dtype")),
    ("speculation", ("spec_method",)),
    ("drafted tokens", ("spec_tokens",)),
    ("CUDA graphs asked", ("cudagraph_initial",)),
    ("CUDA graphs effective", ("cudagraph_effective",)),
    ("eager", ("enforce_eager",)),
    ("model runner", ("model_runner",)),
    ("compile cache", ("compile_cache", "state")),
)


def decisions_table(runs: Sequence[Run]) -> Table:
    """What the engine decided, by arm; an arm whose boots differ has a row for each set."""
    counted: dict[tuple[str, ...], int] = {}
    for run in runs:
        for boot in run.boots:
            if boot.decided is not None and boot.planned is not None:
                cells = tuple(_fact(boot.decided.facts, path) for _, path in _DECISIONS)
                key = (boot.started.arm, boot.decided.version, *cells)
                counted[key] = counted.get(key, 0) + 1
    order = _order(runs)
    rows = [
        (key[0], str(count), *key[1:])
        for key, count in sorted(counted.items(), key=lambda item: (order.arm(item[0][0]), item))
    ]
    return Table(
        "decisions",
        "What the engine decided, by arm",
        (
            (
                "Read from the engine's own log. It logs a decision once per distinct text, so "
                '"same or unlogged" for a draft model is all that can be said.'
            ),
            '"unlogged": this build of the engine does not log it.',
            "Chosen: how the backend was chosen, by the engine itself or by the arm's option.",
        ),
        (
            *words("arm"),
            Column("boots"),
            *words("version"),
            *words(*[name for name, _ in _DECISIONS]),
        ),
        tuple(rows),
    )


def boots_table(runs: Sequence[Run]) -> Table:
    """Planned, completed, failed and interrupted boots, and windows, by arm that has any boot."""
    rows = []
    for arm, boots in _by_arm(runs).items():
        if not boots:
            continue
        planned = [b for b in boots if b.planned is not None]
        windows = [w for b in planned for w in b.windows if not w.window.by_peer]
        rows.append(
            (
                arm,
                str(sum(_planned(run, arm) for run in runs)),
                *[
                    _count(planned, outcome)
                    for outcome in ("completed", "failed", "interrupted", "open")
                ],
                str(len(boots) - len(planned)),
                str(len(windows)),
                str(sum(len(b.usable_windows) for b in planned)),
                str(sum(1 for w in windows if w.void)),
            )
        )
    names = (
        "planned",
        "completed",
        "failed",
        "interrupted",
        "open",
        "priming",
        "windows",
        "used",
        "void",
    )
    return Table(
        "boots",
        "Boots and windows, by arm",
        (
            (
                "An interrupted boot is tried again; priming boots fill a warm arm's caches and "
                "are not measured."
            ),
            "Used: windows of completed boots that nothing voids. Void windows keep their records.",
            *not_begun(runs),
        ),
        (*words("arm"), *[Column(name) for name in names]),
        tuple(rows),
    )


def void_table(runs: Sequence[Run]) -> Table:
    """Each void window with its reasons, and each boot that failed or was interrupted."""
    rows = []
    for run in runs:
        for boot in run.boots:
            unused = boot.outcome != "completed" or boot.cut_off
            if (boot.ended is not None or boot.gone) and unused:
                cause = f"{boot.outcome}: {boot.cause}"
                rows.append((run.run_id, boot.started.boot, boot.started.arm, MISSING, cause))
            for window in boot.windows:
                rows += [
                    (
                        run.run_id,
                        boot.started.boot,
                        boot.started.arm,
                        window.window.id,
                        reason_text(reason),
                    )
                    for reason in window.void
                ]
    return Table(
        "void",
        "Boots and windows that were not used, with the reason",
        (),
        words("run", "boot", "arm", "window", "reason"),
        tuple(rows),
    )


def pace_table(runs: Sequence[Run]) -> tuple[Table, ...]:
    """How fast the hosts were around each arm's windows; none where no run recorded it."""
    seen: dict[tuple[str, str, str], list[float]] = {}
    for run in runs:
        for boot in run.boots:
            for window in boot.windows:
                times = pace_ms(window.ended.facts) if window.ended else ()
                if times and boot.planned is not None:
                    key = (run.run_id, run.host_id, boot.started.arm)
                    seen.setdefault(key, []).extend(times)
    if not seen:
        return ()
    order = _order(runs)
    rows = [
        (
            *key,
            str(len(times)),
            *[number(ms, 4) for ms in (statistics.median(times), min(times), max(times))],
            number(100 * (max(times) / min(times) - 1), 1),
        )
        for key, times in sorted(seen.items(), key=lambda one: (one[0][:2], order.arm(one[0][2])))
    ]
    notes = (
        (
            "A fixed piece of work, timed before and after each window on the first of the "
            "engine's processors: the median, the fastest and the slowest time, and by how much "
            "the slowest was slower."
        ),
        "An engine that waits for its processor slows down with it: boots, arms, hosts differ so.",
    )
    columns = (
        *words("run", "host", "arm"),
        Column("times"),
        *[Column(name, "ms") for name in ("median", "fastest", "slowest")],
        Column("apart", "%"),
    )
    return (Table("pace", "How fast the hosts were", notes, columns, tuple(rows)),)


def calibration_table(runs: Sequence[Run]) -> Table:
    """What the client's stamps are worth on the hosts of these runs."""
    rows = [
        (
            run.run_id,
            run.host_id,
            str(c.concurrency),
            number(c.step_gap_ns / 1e6, 1),
            str(c.chunks),
            *[number(ns / 1e6, 4) for ns in (c.error_p50_ns, c.error_p99_ns, c.error_max_ns)],
            number(c.server_late_p99_ns / 1e6, 4),
            c.report.stamps,
            number(100 * c.report.merged / c.report.chunks, 3) if c.report.chunks else MISSING,
            str(c.capacity_chunks_per_s),
        )
        for run in runs
        for c in run.calibrations
    ]
    return Table(
        "calibration",
        "The client against a server of known schedule",
        (
            "Error: receive stamp minus the server's own send stamp.",
            "Server late: how far behind its schedule the server itself sent.",
            (
                "Stamps: kernel, taken as the bytes arrived; user, taken when the client read "
                "them, which is later by an unknown time."
            ),
            "Merged: chunks that came in one read with a later one; their times are upper bounds.",
            "Capacity: chunks over the client's busiest CPU time, extrapolated to one full core.",
        ),
        (
            *words("run", "host"),
            Column("concurrency"),
            Column("step gap", "ms"),
            Column("chunks"),
            Column("error p50", "ms"),
            Column("error p99", "ms"),
            Column("error max", "ms"),
            Column("server late p99", "ms"),
            *words("stamps"),
            Column("merged", "%"),
            Column("capacity", "chunks/s"),
        ),
        tuple(rows),
    )


def _fact(facts: dict[str, object], path: tuple[str, ...]) -> str:
    value: object = facts
    for key in path:
        value = value.get(key, MISSING) if isinstance(value, dict) else MISSING
    return "unlogged" if value == -1 else str(value)  # as remote/engine/log.py marks a count


def _by_arm(runs: Sequence[Run]) -> dict[str, list[Boot]]:
    """All boots of each arm, arms in the plan's order, those without a boot included."""
    boots: dict[str, list[Boot]] = {arm.id: [] for run in runs for arm in run.started.plan.arms}
    for run in runs:
        for boot in run.boots:
            boots[boot.started.arm].append(boot)
    return boots


def _order(runs: Sequence[Run]) -> PlanOrder:
    return PlanOrder(run.started.plan for run in runs)


def _planned(run: Run, arm: str) -> int:
    """How many boots of the arm the run was to carry out: several hosts may share a plan's blocks.

    Blocks that it left out, as its host went back, were not begun.
    """
    boots = boot_order(run.started.plan, run.started.blocks)
    return sum(boot.arm == arm and boot.block not in run.left_out for boot in boots)


def _count(boots: Sequence[Boot], outcome: str) -> str:
    return str(sum(boot.outcome == outcome for boot in boots))
