"""What the kit asks of SkyPilot: launch a managed job, look, cancel; and the bucket brought here.

Invariant: SkyPilot is imported only when it is asked for something, and asked through its public
API alone (0.14): `sky.jobs.launch`, `queue_v2`, `cancel`, `sky.Task.from_yaml_config`; what it
raises is a SchedulerError.
"""

from __future__ import annotations

import copy
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Protocol

from kit.sky.site import SkySite
from records.errors import SchedulerError

_TIMEOUT_S = 600
# What aws and gsutil say of a bucket that the first launch is yet to make.
_NO_BUCKET = (
    "NoSuchBucket",
    "BucketNotFoundException",
    "does not name a directory, bucket, or bucket subdir",
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Cloud(Protocol):
    """Managed jobs, and one bucket."""

    def launch(self, document: Mapping[str, Any]) -> int:
        """The number of the managed job that carries the task out."""
        ...

    def number(self, name: str) -> int | None:
        """The managed job of this name; None where there is none."""
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
        with _asked() as (sky, jobs):
            task = sky.Task.from_yaml_config(copy.deepcopy(dict(document)))  # it empties it
            numbers, _ = sky.stream_and_get(jobs.launch(task, name=document["name"]))
            return int(numbers[0])

    def number(self, name: str) -> int | None:
        """By `sky.jobs.queue_v2`, which finds parts of names, too."""
        records = self._queue(name_match=name)
        found = (int(record.job_id) for record in records if record.job_name == name)
        return next(found, None)

    def statuses(self, jobs: Sequence[int]) -> dict[int, str]:
        """By `sky.jobs.queue_v2`."""
        records = self._queue(job_ids=list(jobs))
        return {int(record.job_id): str(record.status.value) for record in records}

    def cancel(self, job: int) -> None:
        """By `sky.jobs.cancel`, after what is written to the bucket has reached it."""
        with _asked() as (sky, jobs):
            sky.get(jobs.cancel(job_ids=[job], graceful=True))

    def _queue(self, **which: object) -> Sequence[Any]:
        with _asked() as (sky, jobs):
            try:
                records, *_ = sky.get(jobs.queue_v2(refresh=False, **which))
            except sky.exceptions.ClusterNotUpError as error:
                # The machine that keeps the queue ends itself where no job has run for a while.
                if error.cluster_status not in (None, sky.ClusterStatus.STOPPED):
                    raise
                return ()
            return tuple(records)

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
        if done.returncode != 0 and not any(words in done.stderr for words in _NO_BUCKET):
            words = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            raise SchedulerError(f"{argv[0]}: {words[-1]}", "sky check; sky storage ls")


def sync_argv(site: SkySite, directory: Path) -> tuple[str, ...]:
    """The command that copies what is new of the bucket. aws-cli and gsutil document these."""
    if site.store == "gcs":
        return ("gsutil", "-m", "-q", "rsync", "-r", f"gs://{site.bucket}", str(directory))
    return ("aws", "s3", "sync", f"s3://{site.bucket}", str(directory), "--only-show-errors")


@contextmanager
def _asked() -> Iterator[tuple[Any, Any]]:
    """SkyPilot and its managed jobs; what they raise inside becomes a SchedulerError.

    What they print is no result: from its import on, SkyPilot takes standard output for its log.
    """
    with redirect_stdout(sys.stderr):
        try:
            sky, jobs = importlib.import_module("sky"), importlib.import_module("sky.jobs")
            exceptions = importlib.import_module("sky.exceptions")
        except ImportError as error:
            raise SchedulerError(
                f"SkyPilot is not installed beside the kit: {error}", "pip install '.[sky]'"
            ) from error
        try:
            yield sky, jobs
        except _kinds(exceptions) as error:
            said = _COLOURS.sub("", str(error)).strip() or type(error).__name__
            raise SchedulerError(
                f"SkyPilot: {said}",
                "sky check, sky api status; then the same command: it launches nothing twice",
            ) from error


def _kinds(exceptions: Any) -> tuple[type[Exception], ...]:
    """SkyPilot's own, which have no base in common, and what its requests to its server raise."""
    found = vars(exceptions).values()
    own = (kind for kind in found if isinstance(kind, type) and issubclass(kind, Exception))
    return (*own, RuntimeError, ValueError, OSError)
