"""What a scheduler says of a run stands beside what the host says, and names no machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView
from records.schema import HostObserved, SchedulerObserved

APART = Code(
    "SCHED01",
    "error",
    "an allocation that does not stand beside its observation of the host",
    "scheduler.observed follows host.observed, of the same phase, line by line: which node and job "
    "gave the host that was seen.",
    "restore the journal from git or from the host",
)
MOVED = Code(
    "SCHED02",
    "error",
    "a run changed its node or its scheduler without being resumed",
    "A harness runs where it was started. On another node, or in another job, it can only have "
    "been resumed; and the count of a job's restarts never falls.",
    "the run cannot stand: measure again",
)
NAMED = Code(
    "SCHED03",
    "error",
    "a node is named in the record",
    "A node is known by a salted id of twelve hexadecimal digits, as a host is.",
    "teach remote/slurm/observation.py what it missed, then measure again",
)

_ID = re.compile(r"[0-9a-f]{12}")


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Walk the observations of each run."""
    for run, scan in repository.readable():
        shown = repository.show(run.directory.events)
        seen = [event for event in scan.events if isinstance(event.value, SchedulerObserved)]
        before = {event.line + 1: event.value for event in scan.of(HostObserved)}
        for event in seen:
            host, value = before.get(event.line), event.value
            if host is None or host.phase != value.phase:
                got = f"phase {host.phase}" if host else "another event before it"
                yield APART.at(shown, event.line, "", got, f"host.observed, phase {value.phase}")
            if not _ID.fullmatch(value.node):
                got = f"{len(value.node)} characters"
                yield NAMED.at(shown, event.line, "", got, "12 hexadecimal digits")
        for first, event in pairwise(seen):
            then, now = first.value, event.value
            place = (now.scheduler, now.node, now.job)
            stays = now.phase == "resume" or place == (then.scheduler, then.node, then.job)
            fell = now.job == then.job and 0 <= now.restarts < then.restarts
            if not stays or fell:
                got = f"job {now.job}, node {now.node}, restart {now.restarts}"
                want = f"job {then.job}, node {then.node}, restart {then.restarts} or later"
                yield MOVED.at(shown, event.line, "", got, want)


CHECK = Check(
    "scheduler",
    "What a scheduler says of a run stands beside what the host says, and names no machine.",
    (APART, MOVED, NAMED),
    check,
    scope="meaning",
    kind="conduct",
)
