"""Machines of a cloud as a host: their files by the bucket, their processes as managed jobs.

Invariant: the bucket is looked at no more often than the site's `poll_s`; what it holds is copied
to a directory here, and only read.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

from kit.home import Home
from kit.hosts.host import Running
from kit.hosts.local import LocalHost
from kit.sky.cloud import Cloud
from kit.sky.site import SkySite

# SkyPilot's ManagedJobStatus: what a job does not come back from.
ENDED = {
    "SUCCEEDED": 0,
    "CANCELLED": 52,
    "FAILED": 1,
    "FAILED_SETUP": 1,
    "FAILED_PRECHECKS": 1,
    "FAILED_NO_RESOURCE": 1,
    "FAILED_CONTROLLER": 1,
}


class SkyHost(LocalHost):
    """A directory here that follows the bucket; the jobs by their names in notes."""

    def __init__(self, site: SkySite, cloud: Cloud, name: str, part: str) -> None:
        self.site = site
        self.cloud = cloud
        self.part = part
        self.name = name
        self._home: Home | None = None
        self._looked_at = -math.inf
        self._numbers: dict[str, int] = {}
        self._statuses: dict[int, str] = {}
        self._asked_at = -math.inf

    def home(self, here: Home) -> Home:
        """A directory of the kit's own, one for each bucket."""
        self._home = replace(here, path=here.path / "sky" / self.site.bucket)
        return self._home

    def mirror(self, here: Home) -> Home:
        """What has been seen of it, as a witness against the bucket."""
        return replace(here, path=here.path / "hosts" / f"sky-{self.site.bucket}")

    def names(self, directory: Path) -> tuple[str, ...]:
        """As the bucket holds it now."""
        self._follow()
        return super().names(directory)

    def read(self, path: Path, offset: int = 0) -> bytes:
        """As the bucket holds it now."""
        self._follow()
        return super().read(path, offset)

    def attach(self, note: Path, argv_part: str) -> Running | None:  # noqa: ARG002
        """The managed job that the note's neighbour remembers, unless it has ended."""
        try:
            name = job_note(note).read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            return None
        number = self._numbers.get(name) or self.cloud.number(name)
        if number is None:
            return None
        self._numbers[name] = number
        found = ManagedJob(self, number)
        return found if found.exit_status() is None else None

    def monotonic_ns(self) -> int:
        """0: each machine has a clock of its own."""
        return 0

    def status(self, number: int) -> str:
        """The job's status as of the last look at all; "" where SkyPilot does not know it."""
        is_due = time.monotonic() - self._asked_at >= self.site.poll_s
        if is_due or number not in self._statuses:
            numbers = sorted({*self._statuses, number})
            found = self.cloud.statuses(numbers)
            self._statuses = {one: found.get(one, "") for one in numbers}
            self._asked_at = time.monotonic()
        return self._statuses[number]

    def _follow(self) -> None:
        if self._home is not None and time.monotonic() - self._looked_at >= self.site.poll_s:
            self.cloud.bring(self._home.path)
            self._looked_at = time.monotonic()


@dataclass(frozen=True, slots=True)
class ManagedJob:
    """A managed job as a running process."""

    host: SkyHost
    pid: int

    def exit_status(self) -> int | None:
        """None while SkyPilot starts, runs or recovers it; 0 where it has forgotten it."""
        status = self.host.status(self.pid)
        return ENDED.get(status) if status else 0

    @property
    def waits(self) -> bool:
        """Whether it waits for a machine, at first or again."""
        return self.host.status(self.pid) not in ("", "RUNNING", *ENDED)

    def interrupt(self) -> None:
        """End it. What was measured since the last boot that ended is measured again."""
        self.host.cloud.cancel(self.pid)


def job_note(note: Path) -> Path:
    """Beside the note of a process, the one of a managed job: its name."""
    return note.with_suffix(".sky")
