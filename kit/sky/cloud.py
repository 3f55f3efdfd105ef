"""What the kit asks of SkyPilot: launch a managed job, look, cancel; and the bucket brought here.

Invariant: SkyPilot is imported only when it is asked for something, and asked through its public
API alone (0.14): `sky.jobs.launch`, `queue`, `cancel`, `sky.Task.from_yaml_config`.
"""

from __future__ import annotations

import copy
import importlib
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from kit.sky.site import SkySite
from records.errors import SchedulerError

_TIMEOUT_S = 600


class Cloud(Protocol):
    """Managed jobs, and one bucket."""

    def launch(self, document: Mapping[str, Any]) -> int:
        """The number of the managed job that carries the task out."""
        ...

    def statuses(self, jobs: Sequence[int]) -> dict[int, str]:
        """The status of those that are known, in SkyPilot's words."""
        ...

    def cancel(self, job: int) -> None:
        """End a job and its machine."""
        ...

    def bring(self, directory: Path) -> None:
        """What the bucket holds, into a directory here."""
        ...


class SkyPilot:
    """SkyPilot as it is installed beside the kit."""

    def __init__(self, site: SkySite) -> None:
        self._site = site

    def launch(self, document: Mapping[str, Any]) -> int:
        """By `sky.jobs.launch`."""
        sky, jobs = _sky()
        task = sky.Task.from_yaml_config(copy.deepcopy(dict(document)))  # it empties what it reads
        numbers, _ = sky.stream_and_get(jobs.launch(task, name=document["name"]))
        return int(numbers[0])

    def statuses(self, jobs: Sequence[int]) -> dict[int, str]:
        """By `sky.jobs.queue`."""
        sky, module = _sky()
        records = sky.get(module.queue(refresh=False, job_ids=list(jobs)))
        return {int(_of(r, "job_id")): _word(_of(r, "status")) for r in records}

    def cancel(self, job: int) -> None:
        """By `sky.jobs.cancel`, after what is written to the bucket has reached it."""
        sky, jobs = _sky()
        sky.get(jobs.cancel(job_ids=[job], graceful=True))

    def bring(self, directory: Path) -> None:
        """By the store's own command, which brings only what is new."""
        directory.mkdir(parents=True, exist_ok=True)
        argv = sync_argv(self._site, directory)
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SchedulerError(f"{argv[0]}: {error}", f"install {argv[0]} and log in") from error
        if done.returncode != 0 and "NoSuchBucket" not in done.stderr:
            words = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            raise SchedulerError(f"{argv[0]}: {words[-1]}", "sky check; sky storage ls")


def sync_argv(site: SkySite, directory: Path) -> tuple[str, ...]:
    """The command that copies what is new of the bucket. aws-cli and gsutil document these."""
    if site.store == "gcs":
        return ("gsutil", "-m", "-q", "rsync", "-r", f"gs://{site.bucket}", str(directory))
    return ("aws", "s3", "sync", f"s3://{site.bucket}", str(directory), "--only-show-errors")


def _sky() -> tuple[Any, Any]:
    try:
        return importlib.import_module("sky"), importlib.import_module("sky.jobs")
    except ImportError as error:
        raise SchedulerError(
            f"SkyPilot is not installed beside the kit: {error}", "pip install '.[sky]'"
        ) from error


def _of(record: Any, name: str) -> Any:
    return record[name] if isinstance(record, dict) else getattr(record, name)


def _word(status: Any) -> str:
    return str(getattr(status, "value", status))
