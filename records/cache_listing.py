"""The listing of a compile cache: what an engine compiled on one host, to be carried to another.

Invariant: every file of the cache stands here with its digest and its time of change, and the
digest of the listing names the cache. Times count: ninja builds again what is older than what it
was made from, or younger than its own log says (ninja's manual, "the Ninja log").
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from records import canonical
from records.decode import from_object, to_object
from records.digest import Digest
from records.errors import BundleDamagedError, FormatError
from records.plan import Arm

FORMAT = 1
LISTING = "cache.json"
# Below the root on a host: where a carried cache waits until it is put in its place.
CARRIED = "cache"
# Below the scratch directory: the one directory of all warm arms.
WARM = "cache/warm"


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file of a cache, relative to it."""

    path: str
    size_bytes: int
    digest: Digest
    mtime_ns: int
    executable: bool

    def __post_init__(self) -> None:
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts or str(path) != self.path:
            raise FormatError(f"cache: {self.path!r} leads out of the directory")


@dataclass(frozen=True, slots=True)
class CachePart:
    """A piece of the compressed stream: a file beside the listing."""

    name: str
    size_bytes: int
    digest: Digest

    def __post_init__(self) -> None:
        if PurePosixPath(self.name).name != self.name:
            raise FormatError(f"cache: {self.name!r} is not the name of a file")


@dataclass(frozen=True, slots=True)
class CacheBinding:
    """What a job says of a cache that was there before its run, carried or filled by other plans.

    `arms`: the digests of those that it was filled by.
    """

    digest: Digest
    arms: tuple[Digest, ...]


@dataclass(frozen=True, slots=True)
class CacheListing:
    """A cache as it was on the host that filled it.

    `arms`: digests (`arm_digest`) of the arms that had a whole boot with it. `root`: the directory
    below which host and cache lay: what is compiled names its inputs by path, so below another root
    some of it is compiled again. `run`: in which run it was filled. `engine`: the binding of the
    engine that filled it. `parts`: a gzip stream of a tar of the files, in order, cut.
    """

    format: int
    run: str
    engine: Digest
    root: str
    arms: tuple[Digest, ...]
    files: tuple[CachedFile, ...]
    parts: tuple[CachePart, ...]

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise FormatError(f"cache of format {self.format}; this kit reads format {FORMAT}")

    @property
    def digest(self) -> Digest:
        """The name of the cache: of its files and who filled it, however it was cut."""
        whole = CacheListing(
            self.format, self.run, self.engine, self.root, self.arms, self.files, ()
        )
        return Digest.of(canonical.encode(to_object(whole)))

    @property
    def binding(self) -> CacheBinding:
        """What a job says of it."""
        return CacheBinding(self.digest, self.arms)

    @property
    def size_bytes(self) -> int:
        """What the files weigh."""
        return sum(file.size_bytes for file in self.files)

    def encode(self) -> bytes:
        """The bytes of cache.json."""
        return canonical.encode(to_object(self))


def arm_digest(arm: Arm) -> Digest:
    """What of an arm decides what its engine compiles: all but its name, factors and blocks."""
    return Digest.of(
        canonical.encode(
            {
                "args": list(arm.args),
                "env": arm.env,
                "model": arm.model,
                "speculative_config": arm.speculative_config,
            }
        )
    )


def read_listing(directory: Path) -> CacheListing:
    """The listing in this directory. BundleDamagedError where there is none that decodes."""
    path = directory / LISTING
    try:
        return from_object(CacheListing, canonical.decode(path.read_bytes()))
    except OSError as error:
        raise BundleDamagedError(f"{path}: {error.strerror}", f"carry {LISTING} there") from error
    except FormatError as error:
        raise BundleDamagedError(f"{path}: {error.message}", f"carry {LISTING} anew") from error
