"""The job of a plan below a root that it may share with other plans: kept or new, on which cache.

Invariant: the warm cache is replaced only while no other plan's run has used it. Once one has, a
run begins on the cache as it stands, listed file by file, and none loses what it filled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from records import bundle
from records.cache_listing import CARRIED, CacheBinding, CacheListing
from records.errors import RunBusyError
from records.host_lock import holder, lock_path
from records.job import Job
from remote.install import carried_cache
from remote.install.fillings import filling_of, together
from remote.install.job import Here, continued_job, jobs_below, new_job, rebind

Say = Callable[[str], None]


def require_idle(root: Path, name: str) -> None:
    """RunBusyError while a run of another plan below `root` is measured: installing disturbs it.

    `name`: the file of the job that is to be installed.
    """
    held = holder(lock_path(os.environ))
    for other, job in jobs_below(root).items():
        if other != name and held == f"run {job.run_id}":
            raise RunBusyError(
                f"{held}, of plan {job.plan.id}, is being measured; installing would disturb it",
                "the same command again when it has ended",
            )


def settle(
    template: Path, here: Here, carried: CacheListing | None, *, new: bool, say: Say
) -> tuple[Job, bool]:
    """The job of `template` below the root, and whether its run is another one than before.

    `carried`: the listing of the cache that came with the bundle. FormatError: no template, or a
    journal below the root does not decode. BundleDamagedError: the carried cache is not whole.
    """
    jobs = jobs_below(here.root)
    own = jobs.pop(template.name, None)
    if any(filling_of(job).booted for job in jobs.values()):
        return _on_shared_cache(template, here, own, jobs.values(), new=new, say=say)
    here = replace(here, cache=carried.binding if carried else None)
    kept = None if new else continued_job(template, here)
    job = kept or new_job(template, here)
    if kept is None and carried:  # a run that was begun has added to it
        carried_cache.place(here.root / CARRIED, here.root / bundle.SCRATCH, say)
    return job, kept is None


def _on_shared_cache(
    template: Path, here: Here, own: Job | None, others: Iterable[Job], *, new: bool, say: Say
) -> tuple[Job, bool]:
    jobs = [*others] if own is None else [*others, own]
    kept = None
    if own is not None and not new:
        kept = continued_job(template, replace(here, cache=own.cache))
    if kept is None:
        return new_job(template, replace(here, cache=_standing(here.root, jobs, say))), True
    if not filling_of(kept).booted:  # others have used the cache since
        kept = rebind(here.root / template.name, kept, _standing(here.root, jobs, say))
    return kept, False


def _standing(root: Path, jobs: Iterable[Job], say: Say) -> CacheBinding | None:
    """The cache as the runs of these jobs left it; None where no arm is known to have filled it."""
    filling = together(filling_of(job) for job in jobs)
    if filling is None or filling.engine is None or not filling.arms:
        return None
    return carried_cache.list_standing(root, filling, say).binding
