"""Which arms filled the warm cache that the runs below one root share, told from their journals.

Invariant: an arm counts from its first boot that came to its end; a torn last line, as a kill or a
growing journal leaves it, counts as not written. The harness holds journals to account, not this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from records import canonical, chain, schema
from records.cache_listing import arm_digest
from records.digest import Digest
from records.job import Job
from records.run_directory import RunDirectory, is_regular


@dataclass(frozen=True, slots=True)
class Filling:
    """What one run left in the warm cache; `arms` by digest, those that were carried here included.

    `engine`: the binding of the engine, None before it was bound. `booted`: a warm arm was booted,
    so that the cache is no longer what it was before this run. `whole`: such a boot came to its
    end.
    """

    run: str
    engine: Digest | None
    arms: frozenset[Digest]
    booted: bool
    whole: bool


def filling_of(job: Job) -> Filling:
    """What the job's run has filled so far; FormatError where its journal does not decode."""
    warm = {arm.id: arm for arm in job.plan.arms if arm.cache == "warm"}
    begun: dict[str, str] = {}
    filled: set[str] = set()
    engine: Digest | None = None
    carried = set(job.cache.arms if job.cache else ())
    for event in _events(RunDirectory(Path(job.run_directory))):
        if isinstance(event, schema.EngineBound):
            engine = event.digest
        elif isinstance(event, schema.RunResumed) and event.cache_gone:
            filled.clear()
            carried.clear()
        elif isinstance(event, schema.BootStarted) and event.arm in warm:
            begun[event.boot] = event.arm
        elif isinstance(event, schema.BootEnded) and event.outcome == "completed":
            filled.update({begun[event.boot]} if event.boot in begun else ())
    arms = frozenset(carried) | {arm_digest(warm[name]) for name in filled}
    return Filling(job.run_id, engine, arms, bool(begun), bool(filled))


def together(fillings: Iterable[Filling]) -> Filling | None:
    """What the runs that booted left, under the name of the newest; None where none did.

    What another engine than the newest run's compiled does not serve, and does not count.
    """
    used = sorted((one for one in fillings if one.booted), key=lambda one: one.run)
    if not used:
        return None
    alike = [one for one in used if one.engine == used[-1].engine]
    arms = frozenset(arm for one in alike for arm in one.arms)
    whole = any(one.whole for one in alike)
    return Filling(used[-1].run, used[-1].engine, arms, booted=True, whole=whole)


def _events(run: RunDirectory) -> Iterator[object]:
    if not is_regular(run.events):
        return
    with run.events.open("rb") as file:
        for number, line in enumerate(chain.lines_of(file), 1):
            if line.endswith(b"\n"):
                where = f"{run.events}:{number}"
                yield schema.decode(canonical.decode(line[:-1]), where).event
