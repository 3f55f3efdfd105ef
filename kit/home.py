"""Where the kit keeps things: its working directory, the records, the tables.

Invariant: what can be made again lies below `path`; records that were fetched lie elsewhere, so
that deleting `path` loses none of them.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from records import durable
from records.errors import FormatError
from records.job import Job

_SALT = re.compile(rb"([0-9a-f]{32})\n?")
# What a file system without hard links answers.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP})


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
        """The project's salt for host ids, made on first use and never shared.

        FormatError where something else stands there: an id by another salt is of another host.
        """
        file = self.path / "salt"
        try:
            held = file.read_bytes()
        except FileNotFoundError:
            _make_salt(file)
            held = file.read_bytes()
        match = _SALT.fullmatch(held)
        if match is None:
            raise FormatError(
                f"{file} is no salt of host ids: want 32 hexadecimal digits",
                f"put back the one of your runs so far, host_salt in a file of {self.jobs}; "
                f"or if there are none: rm {shlex.quote(str(file))}",
            )
        return match[1].decode("ascii")


def _make_salt(file: Path) -> None:
    """A fresh one, whole under its name or not at all; where one is there by now, that stays."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fd, fresh = tempfile.mkstemp(prefix=".salt.", dir=file.parent)  # for its owner alone
    try:
        try:
            durable.write(fd, f"{secrets.token_hex(16)}\n".encode(), file, "the salt")
        finally:
            os.close(fd)
        try:
            os.link(fresh, file)
        except FileExistsError:
            pass
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            Path(fresh).rename(file)
        durable.flush_directory(file.parent)
    finally:
        Path(fresh).unlink(missing_ok=True)


def is_synthetic(job: Job) -> bool:
    """Whether the job drives the reference server, not an engine."""
    return job.synthetic
