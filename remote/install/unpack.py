"""The files of a bundle below the root, each written whole and with its digest, or not at all.

Invariant: a file that stands at its place and has its digest is kept; a stopped unpacking is
continued by unpacking again.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from records.bundle import Content, Manifest
from records.bundle_stream import read_contents, require_digest
from records.digest import Digest
from records.errors import DiskFullError

_BLOCK_BYTES = 1 << 20


def unpack(directory: Path, manifest: Manifest, root: Path) -> int:
    """Bring the stream's files below `root`; how many were there already.

    DiskFullError where one cannot be written; BundleDamagedError where one has another digest.
    """
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        there = list(pool.map(lambda one: _stands(root, one), manifest.content))
    if all(there):
        return len(there)
    kept = {one.path for one, stands in zip(manifest.content, there, strict=True) if stands}

    def take(want: Content, file: BinaryIO) -> None:
        if want.path not in kept:
            _write(root / want.path, want, file)

    read_contents(directory, manifest, take)
    return len(kept)


def _stands(root: Path, want: Content) -> bool:
    path = root / want.path
    try:
        if path.stat().st_size != want.size_bytes:
            return False
        with path.open("rb") as file:
            return Digest.of_file(file) == want.digest
    except OSError:  # then it is written anew, and what hinders that is told there
        return False


def _write(path: Path, want: Content, file: BinaryIO) -> None:
    fresh = path.with_name(f"{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("w+b") as target:
            while block := file.read(_BLOCK_BYTES):
                target.write(block)
            target.seek(0)
            require_digest(want, Digest.of_file(target))
        fresh.replace(path)
    except OSError as error:
        raise DiskFullError(
            f"{path}: {error.strerror}", "free some space or name another --root"
        ) from error
