"""A run carries the plan whose digest it states, and boots follow the order it prescribes."""

from __future__ import annotations

from collections.abc import Iterator

from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView
from records.plan import boot_order
from records.schema import BootStarted, RunResumed

DIGEST = Code(
    "PLAN01",
    "error",
    "the plan in the run does not have the digest that the run states",
    "run.started holds the whole plan and the SHA-256 of its canonical encoding.",
    "restore the journal from git or from the host",
)
ORDER = Code(
    "PLAN02",
    "error",
    "boots were not started in the planned order",
    "The order of boots in each block follows from the plan's seed (records/plan.py), so that "
    "nobody can choose it while looking at results.",
    "the run cannot stand: measure again",
)
FOREIGN = Code(
    "PLAN03",
    "error",
    "a boot that the plan does not ask for",
    "Every measured boot is one of boot_order(plan), with its arm; only a boot that fills a warm "
    "arm's caches stands outside, and it measures nothing.",
    "the run cannot stand: measure again",
)
SYNTHETIC = Code(
    "PLAN04",
    "error",
    "a synthetic run among the records",
    "A run against the reference server says nothing of any engine: kept out of records/data.",
    "move the run elsewhere; make demo writes its runs under build/",
)
HARNESS = Code(
    "PLAN05",
    "warning",
    "the run was resumed by another harness than the one that began it",
    "The harness is the instrument. Boots measured by two of them are not replicates of each other "
    "unless the difference is known not to matter.",
    "compare the sources at both digests, or measure again",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Hold each run against its plan."""
    for run, scan in repository.readable():
        shown = repository.show(run.directory.events)
        started = scan.started
        if started is None:
            continue
        if started.synthetic:
            yield SYNTHETIC.at(shown, 1)
        if started.plan.digest != started.plan_digest:
            yield DIGEST.at(shown, 1, "", str(started.plan_digest), str(started.plan.digest))
        for event in scan.of(RunResumed):
            if event.value.harness_digest != started.harness_digest:
                now = str(event.value.harness_digest)
                yield HARNESS.at(shown, event.line, "", now, str(started.harness_digest))
        planned = {boot.id: boot for boot in boot_order(started.plan, started.blocks)}
        places = {boot_id: place for place, boot_id in enumerate(planned)}
        reached = -1
        for event in scan.of(BootStarted):
            boot: BootStarted = event.value
            if not boot.planned and boot.arm in {arm.id for arm in started.plan.arms}:
                continue
            known = planned.get(boot.planned)
            if known is None or known.arm != boot.arm:
                want = f"arm {known.arm}" if known else f"one of {', '.join(planned)}"
                got = f"{boot.planned!r} of arm {boot.arm}"
                yield FOREIGN.at(shown, event.line, "", got, want)
                continue
            place = places[boot.planned]
            if place < reached:
                later = list(planned)[reached]
                yield ORDER.at(
                    shown, event.line, "", boot.planned, f"after {later}: none before it"
                )
            reached = max(reached, place)


CHECK = Check(
    "plan",
    "A run carries the plan whose digest it states, and boots follow the order it prescribes.",
    (DIGEST, ORDER, FOREIGN, SYNTHETIC, HARNESS),
    check,
    scope="meaning",
    kind="conduct",
)
