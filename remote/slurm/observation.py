"""What Slurm gave the harness: job, node, limits, figures; for the record.

Invariant: the scheduler is asked between boots only, never beside a measurement; an answer that
does not come makes the source "none" and stops nothing. Names of nodes, users and accounts stay
out: the node is known by a salted hash.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from records.decode import to_object
from records.errors import FormatError
from records.schema import SchedulerObserved
from remote.host import facts, proc
from remote.slurm import report, shared_disk

_TIMEOUT_S = 30


def observe(
    phase: str, salt: str, records: Path, environ: Mapping[str, str]
) -> SchedulerObserved | None:
    """The allocation that this process stands in; None where there is none."""
    job = task_name(environ)
    if not job:
        return None
    source, found = ask(job)
    return SchedulerObserved(
        phase=phase,
        scheduler="slurm",
        job=job,
        node=node_id(salt, environ),
        restarts=int(environ.get("SLURM_RESTART_COUNT") or 0),
        source=source,
        facts={
            "figures": found,
            "limits": _limits(Path("/")),
            "records": to_object(shared_disk.of(records)),
            "cpus_on_node": environ.get("SLURM_CPUS_ON_NODE", proc.ABSENT),
            "gpus_on_node": environ.get("SLURM_GPUS_ON_NODE", proc.ABSENT),
        },
    )


def task_name(environ: Mapping[str, str]) -> str:
    """`12_3` for a task of an array, otherwise the job's number; "" outside Slurm.

    The number alone would not do: that of an array's last task is the array's, and means all tasks.
    """
    array, task = environ.get("SLURM_ARRAY_JOB_ID"), environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else environ.get("SLURM_JOB_ID", "")


def node_id(salt: str, environ: Mapping[str, str]) -> str:
    """Twelve digits that tell nodes of one make apart, and name none."""
    return facts.host_id(salt, ("slurm", environ.get("SLURMD_NODENAME", "")))


def show_job(job: str) -> dict[str, str]:
    """What scontrol shows of a job; nothing where it cannot be asked."""
    lines = answer(("scontrol", "show", "job", "-o", job)).splitlines()
    shown = next((line for line in lines if line.startswith("JobId=")), "")
    return report.parse_show_job(shown) if shown else {}


def ask(job: str) -> tuple[str, list[dict[str, str]]]:
    """The source of a job's figures, and these: sacct's steps, or else scontrol's one line.

    Where a site keeps no accounts, sacct prints nothing on stdout and ends with an error.
    """
    fields = ",".join(("JobID", *report.SACCT_FIELDS))
    text = answer(("sacct", "-j", job, "--parsable2", "--noheader", f"--format={fields}"))
    try:
        steps = report.parse_sacct(text)
    except FormatError:  # of a form that this kit does not know: no reason to end a measurement
        steps = []
    if steps:
        return "sacct", steps
    shown = show_job(job)
    return ("scontrol", [report.figures(shown)]) if shown else ("none", [])


def answer(argv: Sequence[str]) -> str:
    """What a command of Slurm prints; "" where it is not there, refuses or does not answer."""
    try:
        done = subprocess.run(
            list(argv), capture_output=True, errors="replace", timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _limits(root: Path) -> dict[str, Any]:
    """What the control groups of this process allow it; None where there is no limit."""
    cpus = facts.cgroup_file(root, "cpuset", "cpuset.cpus", "cpuset.cpus.effective")
    return {
        "cpuset": cpus.read_text(encoding="utf-8").strip() if cpus else proc.ABSENT,
        "cpu_quota_milli": facts.cpu_quota_milli(root),
        "memory_bytes": facts.memory_limit_bytes(root),
    }
