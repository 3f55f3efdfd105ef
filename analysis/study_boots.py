"""How many boots of each arm each host of a plan gave, failed ones and void windows included.

Invariant: every attempt at a planned boot of these runs is counted once, whatever became of it and
whether or not its block counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from analysis.claiming.reading import BootRecord, StudyRun
from analysis.plan_order import PlanOrder
from analysis.table import Column, Table, words

_OUTCOMES = ("completed", "failed", "interrupted", "open")


def boots_by_host(runs: Sequence[StudyRun]) -> Table:
    """One row an arm and host, and one an arm over all hosts where several have it."""
    order = PlanOrder(run.plan for run in runs)
    found: dict[str, dict[str, list[BootRecord]]] = {}
    for run in sorted(runs, key=lambda one: one.run_id):
        for boot in run.boots:
            found.setdefault(boot.started.arm, {}).setdefault(boot.host_id, []).append(boot)
    by_peer = {window.id: window.by_peer for run in runs for window in run.plan.windows}
    arms = sorted(found, key=order.arm)
    rows = [row for arm in arms for row in _rows(arm, found[arm], by_peer)]
    return Table(
        "boots-by-host",
        "Boots and windows, by arm and host",
        (
            (
                "Attempts at planned boots by how they ended; open: the records end within it. "
                "Priming boots are not counted."
            ),
            "Windows: those of completed boots that the kit's own client measured; void, of these.",
        ),
        (
            *words("arm", "host"),
            *[Column(name) for name in _OUTCOMES],
            Column("windows"),
            Column("void"),
        ),
        tuple(rows),
    )


def _rows(
    arm: str, by_host: dict[str, list[BootRecord]], by_peer: dict[str, bool]
) -> Iterator[tuple[str, ...]]:
    for host, boots in by_host.items():
        yield _row(arm, host, boots, by_peer)
    if len(by_host) > 1:
        every = [boot for boots in by_host.values() for boot in boots]
        yield _row(arm, f"all {len(by_host)}", every, by_peer)


def _row(
    arm: str, host: str, boots: Sequence[BootRecord], by_peer: dict[str, bool]
) -> tuple[str, ...]:
    ended = Counter(boot.outcome for boot in boots)
    windows = [
        void
        for boot in boots
        if boot.outcome == "completed"
        for window, void in boot.windows
        if not by_peer.get(window, False)
    ]
    counts = [*(ended[outcome] for outcome in _OUTCOMES), len(windows), sum(map(bool, windows))]
    return (arm, host, *map(str, counts))
