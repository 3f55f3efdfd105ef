"""Whose machine the harness was given for a while, and by which scheduler; for the record.

Invariant: no name that a user or a site chose is in the result but that of the kit's own job.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from records.decode import to_object
from records.schema import SchedulerObserved
from remote.host.facts import host_id
from remote.slurm import observation as slurm
from remote.slurm import shared_disk

# SkyPilot, "Environment variables at runtime": sky-managed-<time>_<name>_<job>-<task> for a managed
# job; other kinds hold the name of a cluster, by default the user's.
_SKY_TASK, _SKY_NODES, _SKY_MANAGED = "SKYPILOT_TASK_ID", "SKYPILOT_NODE_IPS", "sky-managed-"


def observe(
    phase: str, salt: str, records: Path, environ: Mapping[str, str]
) -> SchedulerObserved | None:
    """The allocation that this process stands in; None where there is none."""
    found = slurm.observe(phase, salt, records, environ)
    if found is not None:
        return found
    task = environ.get(_SKY_TASK, "")
    if not task:
        return None
    return SchedulerObserved(
        phase=phase,
        scheduler="skypilot",
        job=task if task.startswith(_SKY_MANAGED) else host_id(salt, ("skypilot", task)),
        node=host_id(salt, ("skypilot", environ.get(_SKY_NODES, ""))),
        restarts=-1,
        source="none",
        facts={"records": to_object(shared_disk.of(records))},
    )
