"""Where the kit keeps things: its working directory, the records, the tables.

Invariant: what can be made again lies below `path`; records that were fetched lie elsewhere, so
that deleting `path` loses none of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from records.job import Job


@dataclass(frozen=True, slots=True)
class Home:
    """`root`: the project; `path`: what may be deleted; `data`: the records; `out`: the tables."""

    root: Path
    path: Path
    data: Path
    out: Path

    @classmethod
    def find(cls, environ: Mapping[str, str]) -> Home:
        """The project this package stands in; KIT_HOME, KIT_DATA and KIT_OUT move its parts."""
        root = Path(__file__).resolve().parent.parent
        return cls(
            root,
            Path(environ.get("KIT_HOME") or root / ".kit").absolute(),
            Path(environ.get("KIT_DATA") or root / "records" / "data").absolute(),
            Path(environ.get("KIT_OUT") or root / "build").absolute(),
        )

    @property
    def plans(self) -> Path:
        """The plans that come with the kit."""
        return self.root / "kit" / "plans"

    @property
    def engine(self) -> Path:
        """The engine's own environment."""
        return self.path / "engine"

    @property
    def models(self) -> Path:
        """The materialised models, one directory each."""
        return self.path / "models"

    @property
    def prompts(self) -> Path:
        """Prompt files of the plans that were read, named by digest."""
        return self.path / "prompts"

    @property
    def known_hosts(self) -> Path:
        """The keys of this project's hosts, as ssh keeps them."""
        return self.path / "known_hosts"

    @property
    def harness(self) -> Path:
        """The harness archives, named by digest."""
        return self.path / "harness"

    @property
    def runs(self) -> Path:
        """Runs as the harness writes them."""
        return self.path / "runs"

    @property
    def cache(self) -> Path:
        """Requests of large runs, as they were read once; named by seal."""
        return self.path / "cache"

    @property
    def jobs(self) -> Path:
        """The job files, one a run."""
        return self.path / "jobs"

    @property
    def logs(self) -> Path:
        """What the harnesses printed, and the kit's last unexpected error."""
        return self.path / "logs"

    def scratch(self, run_id: str) -> Path:
        """What a run may lose: engine caches, raw logs, spill files."""
        return self.path / "scratch" / run_id

    def run(self, run_id: str) -> Path:
        """The directory in which the harness records this run."""
        return self.runs / run_id

    def job(self, run_id: str) -> Path:
        """The job file of this run."""
        return self.jobs / f"{run_id}.json"

    def container(self, run_id: str) -> Path:
        """What this run's container is made of, and where its harness asks what it runs in."""
        return self.path / "containers" / run_id

    def log(self, run_id: str) -> Path:
        """What the harness of this run printed."""
        return self.logs / f"{run_id}.log"

    def data_for(self, job: Job) -> Path:
        """Where this job's records are brought: synthetic ones never among the measured."""
        return self.out / "demo" / "records" if is_synthetic(job) else self.data

    def tables_for(self, job: Job) -> Path:
        """Where the tables over those records are written."""
        return self.out / "demo" / "tables" if is_synthetic(job) else self.out / "tables"

    def salt(self) -> str:
        """The project's salt for host ids, made on first use and never shared."""
        file = self.path / "salt"
        try:
            return file.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            self.path.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="ascii") as fresh:
                fresh.write(secrets.token_hex(16) + "\n")
            file.chmod(0o600)
            return self.salt()


def is_synthetic(job: Job) -> bool:
    """Whether the job drives the reference server, not an engine."""
    return job.synthetic
