"""The manifest of a bundle: what is carried to a host without a network, byte for byte.

Invariant: everything in a bundle is named here with its size and digest, apart from the manifest
itself, whose digest is the name of the bundle. A bundle is a few small files beside each other and
a tar stream (GNU format) cut into parts; `cat part-* | tar xf -` unpacks it without this kit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from records import canonical
from records.decode import from_object, to_object
from records.digest import Digest
from records.errors import BundleDamagedError, FormatError

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
class Manifest:
    """A bundle. `files`: the small files beside the parts. `target`: None if there are no wheels.

    `relies_on`: distributions of the host, at the versions the bundle was made against.
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

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise FormatError(f"bundle of format {self.format}; this kit reads format {FORMAT}")
        for name in (*self.files, *(part.name for part in self.parts)):
            if PurePosixPath(name).name != name:
                raise FormatError(f"bundle: {name!r} is not the name of a file")
        for one in self.content:
            path = PurePosixPath(one.path)
            if path.is_absolute() or ".." in path.parts or str(path) != one.path:
                raise FormatError(f"bundle: {one.path!r} leads out of the root")

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
