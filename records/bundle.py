"""The manifest of a bundle: what is carried to a host without a network, byte for byte.

Invariant: everything in a bundle is named here with its size and digest, apart from the manifest
itself, whose digest is the name of the bundle. A bundle is a few small files beside each other and
a tar stream (GNU format) cut into parts; `cat part-* | tar xf -` unpacks it without this kit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from records import canonical
from records.decode import from_object, to_object
from records.digest import Digest
from records.errors import BundleDamagedError, FormatError, PlanError

FORMAT = 1
MANIFEST = "manifest.json"
HARNESS = "harness.pyz"
STARTER = "bundle_install.py"
JOB = "job.json"
# Below the root on the host, where the job looks for them and the stream puts them.
SITE, MODELS, RUNS, SCRATCH = "site", "models", "runs", "scratch"
WHEELS, INSTALLER = "wheels", "installer"
# In the template of a job they stand for what the host decides.
ROOT_WORD, PYTHON_WORD, RUN_WORD = "@ROOT@", "@PYTHON@", "@RUN@"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the stream: a file beside the manifest."""

    name: str
    size_bytes: int
    digest: Digest


@dataclass(frozen=True, slots=True)
class Content:
    """A file in the stream; `path` is where it lies below the root on the host."""

    path: str
    size_bytes: int
    digest: Digest


@dataclass(frozen=True, slots=True)
class Pin:
    """A distribution that the host has and the engine relies on; the name as in PEP 503."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Target:
    """The interpreter the wheels were chosen for: "3.12", "x86_64", and the least glibc."""

    python: str
    machine: str
    glibc: str


@dataclass(frozen=True, slots=True)
class CarriedPlan:
    """A plan of a bundle. `job`: its job's template here, and its job below the root there."""

    plan: str
    plan_digest: Digest
    job: str


def job_file(plan: str, *, first: bool) -> str:
    """The name of a plan's job in a bundle, and below the root on the host."""
    return JOB if first else f"{JOB.removesuffix('.json')}-{plan}.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A bundle. `files`: the small files beside the parts. `target`: None if there are no wheels.

    `relies_on`: distributions of the host, at the versions the bundle was made against.
    `more_plans`: those beside the first, all of one lock.
    """

    format: int
    plan: str
    plan_digest: Digest
    lock: str
    lock_digest: Digest | None
    target: Target | None
    relies_on: tuple[Pin, ...]
    files: dict[str, Digest]
    parts: tuple[Part, ...]
    content: tuple[Content, ...]
    more_plans: tuple[CarriedPlan, ...] = field(default=(), metadata={"since": 2})

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise FormatError(f"bundle of format {self.format}; this kit reads format {FORMAT}")
        for name in (*self.files, *(part.name for part in self.parts)):
            if name in ("", "..") or "\0" in name or PurePosixPath(name).name != name:
                raise FormatError(f"bundle: {name!r} is not the name of a file")
        for one in self.content:
            path = PurePosixPath(one.path)
            leads_out = path.is_absolute() or ".." in path.parts or not path.parts
            if leads_out or "\0" in one.path or str(path) != one.path:
                raise FormatError(f"bundle: {one.path!r} is no path below the root")
        for number, carried in enumerate(self.plans):
            if carried.plan in [other.plan for other in self.plans[:number]]:
                raise FormatError(f"bundle: two plans are called {carried.plan!r}")
            if carried.job != job_file(carried.plan, first=number == 0):
                raise FormatError(f"bundle: {carried.job!r} is no job of plan {carried.plan!r}")
            if number and carried.job not in self.files:
                raise FormatError(f"bundle: {carried.job!r} of plan {carried.plan!r} is no file")

    @property
    def plans(self) -> tuple[CarriedPlan, ...]:
        """Every plan, the first one, which is installed where none is named, first."""
        return (CarriedPlan(self.plan, self.plan_digest, JOB), *self.more_plans)

    def plan_named(self, name: str) -> CarriedPlan:
        """The plan of this id, "" for the first. PlanError lists those that there are."""
        for one in self.plans:
            if name in ("", one.plan):
                return one
        known = ", ".join(one.plan for one in self.plans)
        raise PlanError(f"no plan {name!r} in this bundle; there are: {known}", "name one of these")

    @property
    def digest(self) -> Digest:
        """The name of the bundle."""
        return Digest.of(self.encode())

    @property
    def size_bytes(self) -> int:
        """What the parts weigh."""
        return sum(part.size_bytes for part in self.parts)

    def encode(self) -> bytes:
        """The bytes of manifest.json."""
        return canonical.encode(to_object(self))

    def below(self, folder: str) -> tuple[Content, ...]:
        """The content in one folder."""
        return tuple(one for one in self.content if one.path.startswith(f"{folder}/"))


def read_manifest(directory: Path) -> Manifest:
    """The manifest in this directory. BundleDamagedError where there is none that decodes."""
    path = directory / MANIFEST
    try:
        return from_object(Manifest, canonical.decode(path.read_bytes()))
    except OSError as error:
        raise BundleDamagedError(
            f"{path}: {error.strerror}", "carry manifest.json there first; it names the rest"
        ) from error
    except FormatError as error:
        raise BundleDamagedError(f"{path}: {error.message}", "carry manifest.json anew") from error
