"""Where the engine's compile caches live for an arm, and what is in them.

Invariant: no arm ever sees a cache that its plan does not declare. "cold": a directory of the
arm's own, emptied before each boot. "warm": one directory shared by all warm arms, filled by an
unmeasured boot of each right before the first block that holds it, so that every measured boot of
an arm starts from the same cache (its keys are content hashes; kernels that two arms share are
compiled once). "none": a directory of the arm's own. A warm cache that was there before the run,
carried from another host or filled by the runs of other plans on this one, is declared as "warm,
carried" in every boot of an arm that it was filled by; its digest stands in all of them.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from records.cache_listing import WARM, CacheBinding, arm_digest
from records.plan import Arm

CARRIED = "warm, carried"


@dataclass(frozen=True, slots=True)
class CacheState:
    """A cache directory at one moment; `listing` digests the names and sizes of its files.

    `carried`: the digest of the cache that was there before the run, from another host or filled by
    another plan on this one; "" where none was.
    """

    declared: str
    files: int
    bytes: int
    listing: str
    carried: str = field(default="", metadata={"since": 2})


def cache_directory(scratch: Path, arm: Arm) -> Path:
    """The arm's directory, created; emptied where the arm declares a cold cache."""
    path = scratch / (WARM if arm.cache == "warm" else f"cache/{arm.cache}-{arm.id}")
    if arm.cache == "cold" and path.exists():
        shutil.rmtree(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def observe(path: Path, arm: Arm, carried: CacheBinding | None = None) -> CacheState:
    """What the cache of an arm holds now. `carried`: what was put there before the first boot."""
    listing = hashlib.sha256()
    files = size = 0
    for entry in sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink()):
        length = entry.stat().st_size
        files += 1
        size += length
        listing.update(f"{entry.relative_to(path).as_posix()}\0{length}\n".encode())
    digest = f"sha256:{listing.hexdigest()}"
    if carried is None or arm.cache != "warm":
        return CacheState(arm.cache, files, size, digest)
    declared = CARRIED if covers(carried, arm) else arm.cache
    return CacheState(declared, files, size, digest, str(carried.digest))


def covers(carried: CacheBinding | None, arm: Arm) -> bool:
    """Whether the cache from before the run was filled by an arm that compiles what this does."""
    return carried is not None and arm.cache == "warm" and arm_digest(arm) in carried.arms
