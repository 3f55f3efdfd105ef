"""Where the engine's compile caches live for an arm, and what is in them.

Invariant: no arm ever sees a cache that its plan does not declare. "cold": a directory of the
arm's own, emptied before each boot. "warm": one directory shared by all warm arms, filled by an
unmeasured boot of each before anything is measured, so that every measured boot starts from the
same cache (its keys are content hashes; kernels that two arms share are compiled once). "none": a
directory of the arm's own.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from records.plan import Arm


@dataclass(frozen=True, slots=True)
class CacheState:
    """A cache directory at one moment; `listing` digests the names and sizes of its files."""

    declared: str
    files: int
    bytes: int
    listing: str


def cache_directory(scratch: Path, arm: Arm) -> Path:
    """The arm's directory, created; emptied where the arm declares a cold cache."""
    path = scratch / "cache" / ("warm" if arm.cache == "warm" else f"{arm.cache}-{arm.id}")
    if arm.cache == "cold" and path.exists():
        shutil.rmtree(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def observe(path: Path, declared: str) -> CacheState:
    """What the cache holds now."""
    listing = hashlib.sha256()
    files = size = 0
    for entry in sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink()):
        length = entry.stat().st_size
        files += 1
        size += length
        listing.update(f"{entry.relative_to(path).as_posix()}\0{length}\n".encode())
    return CacheState(declared, files, size, f"sha256:{listing.hexdigest()}")
