"""Runs of one host and one stratum pooled into one set of tables: which, and which boots of them.

Invariant: what counts is decided by the rules of analysis/study.py alone, so a block that two runs
took a share of counts once here as there; what is left out is said in the notes of the tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from analysis.comparing.stratum import Stratum, stratum_of
from analysis.reading import Run
from analysis.study import Carried, Execution, judged
from records import schema
from records.chain import MAX_LINE_BYTES
from records.run_directory import RunDirectory

_SHOWN = 3
# host.observed follows run.started; a resumed run has it there from its first start.
_HEAD_LINES = 4


@dataclass(frozen=True, slots=True)
class Pool:
    """Two or more runs that are analysed together; `name` is the directory of their tables.

    `left_out`: (run, boot) of each attempt in an execution of a block that does not count.
    """

    name: str
    runs: tuple[str, ...]
    left_out: frozenset[tuple[str, str]]
    note: str

    def members(self, runs: Iterable[Run]) -> list[Run]:
        """Those of these runs that are in the pool, without the boots that do not count."""
        return [
            replace(
                run,
                boots=[b for b in run.boots if (run.run_id, b.started.boot) not in self.left_out],
            )
            for run in runs
            if run.run_id in self.runs
        ]


def pools(runs: Iterable[Carried]) -> Iterator[Pool]:
    """Sets of two or more runs that count on the same host in the same stratum.

    Runs may be pooled when format, plan and harness agree (records/schema.py); engine binding,
    driver, GPU and host are strata, so runs that differ in them are kept apart here.
    """
    groups: dict[tuple[Stratum, str], list[Carried]] = {}
    for run in runs:
        # One that went on at another host is of no single one: it stands by itself.
        moved = len({host.host_id for host in run.hosts}) > 1
        whose = f"{run.host_id} {run.started.run_id}" if moved else run.host_id
        groups.setdefault((stratum_of(run), whose), []).append(run)
    for (stratum, _), group in sorted(groups.items(), key=lambda item: item[0]):
        executions = judged(group)
        counting = tuple(sorted({one.run for one in executions if one.counts}))
        if len(counting) > 1:
            name = f"pooled-{stratum.plan}-from-{min(run.started.run_id for run in group)}"
            yield Pool(name, counting, frozenset(_left_out(executions)), _note(executions))


def head_of(directory: RunDirectory) -> tuple[object, ...] | None:
    """What runs that are pooled have in common at least, by the first lines of a journal.

    Nothing is verified, so it tells only which runs need not be read; None where nothing is told.
    """
    started: dict[str, object] = {}
    try:
        with directory.events.open("rb") as file:
            for line in islice(iter(lambda: file.readline(MAX_LINE_BYTES), b""), _HEAD_LINES):
                event = json.loads(line)
                value = event["value"]
                if event["type"] == schema.RunStarted.TYPE:
                    started = value
                elif event["type"] == schema.HostObserved.TYPE:
                    named = ("format", "synthetic", "plan_digest", "harness_digest")
                    return (*(started[name] for name in named), value["host_id"])
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None
    return None


def _left_out(executions: Iterable[Execution]) -> Iterator[tuple[str, str]]:
    for one in executions:
        for _, tries in one.boots if not one.counts else ():
            yield from ((one.run, attempt.started.boot) for attempt in tries)


def _note(executions: Sequence[Execution]) -> str:
    others = [one for one in executions if not one.counts]
    text = (
        "Pooled by the rules of analysis/study.py: of "
        f"{len(executions)} executions of a block {len(executions) - len(others)} count"
    )
    if not others:
        return f"{text}."
    named = "; ".join(f"block {one.block} of run {one.run} ({one.why})" for one in others[:_SHOWN])
    more = f"; and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return f"{text}. Left out: {named}{more}."
