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
from remote.engine.redact import redact
from remote.interruption import Interruption


@dataclass(frozen=True, slots=True)
class Context:
    """One run under way, by the archive of digest `harness`.

    `calibrated_p99_ns` is filled by the calibration, by concurrency.
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

    def record(self, event: Any) -> None:
        """Put an event on disk before anything else happens."""
        with self.interruption.shield():
            self.journal.append(event)

    def clock(self) -> Clock:
        """The pair of clocks now."""
        return read_clock()

    def redact(self, text: str) -> str:
        """`text` without secrets, addresses, and the names of this host and its user."""
        return redact(text, self.private_names)

    def say(self, text: str) -> None:
        """One line of progress for whoever watches the harness's own log."""
        print(text, file=sys.stderr, flush=True)
