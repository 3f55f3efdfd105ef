"""What every step of a run shares: the job, the journal, the engine's adapter, the stop signals.

Invariant: all events go through `record`, which no stop signal can tear.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from records.digest import Digest
from records.job import Job
from records.journal import Journal
from records.plan import Plan
from records.schema import Clock
from remote.clock import read_clock
from remote.engine.adapter import Adapter
from remote.engine.redact import redact, redact_value
from remote.interruption import Interruption
from remote.places import Places


@dataclass(frozen=True, slots=True)
class Context:
    """One run under way, by the archive of digest `harness`.

    `calibrated_p99_ns` is filled by the calibration, by concurrency: the error to reckon with.
    """

    job: Job
    journal: Journal
    adapter: Adapter
    interruption: Interruption
    harness: Digest
    private_names: tuple[str, ...]
    calibrated_p99_ns: dict[int, int] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """The plan being carried out."""
        return self.job.plan

    @property
    def records(self) -> Path:
        """The run directory."""
        return Path(self.job.run_directory)

    @property
    def scratch(self) -> Path:
        """What may be lost: caches, raw logs, spill files."""
        return Path(self.job.scratch)

    @property
    def prompts(self) -> Path:
        """The plan's prompt files, by digest."""
        return Path(self.job.prompts_directory)

    def record(self, event: Any) -> None:
        """Put an event on disk before anything else happens."""
        with self.interruption.shield():
            self.journal.append(event)

    def clock(self) -> Clock:
        """The pair of clocks now."""
        return read_clock()

    def redact(self, text: str) -> str:
        """`text` without secrets, addresses, names of host and user, and places on this host."""
        return redact(self.places.hide(text), self.private_names)

    def redact_value(self, value: Any) -> Any:
        """A plain JSON value, every string in it redacted."""
        return redact_value(self.places.hide_in(value), self.private_names)

    @property
    def places(self) -> Places:
        """The job's directories by their names."""
        return Places.of(self.job)

    def say(self, text: str) -> None:
        """One line of progress for whoever watches the harness's own log."""
        print(text, file=sys.stderr, flush=True)
