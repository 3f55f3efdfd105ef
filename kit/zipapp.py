"""The harness as one file: the same tree gives the same bytes, on any machine.

Invariant: the archive depends on the names and contents of the Python sources of `records/` and
`remote/` alone; order, times, permissions and compression are fixed. Entries are stored, not
deflated, because zlib's output differs between its versions and replacements.
"""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from records.digest import Digest

PACKAGES = ("records", "remote")
MAIN = b"""\
import sys

from remote.main import main

sys.exit(main(sys.argv[1:]))
"""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip entry can carry
_REGULAR_FILE_0644 = 0o100644 << 16
_UNIX = 3


def content(root: Path) -> bytes:
    """The bytes of the archive for the tree at `root`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_entry("__main__.py"), MAIN)
        for path, name in _sources(root):
            archive.writestr(_entry(name), path.read_bytes())
    return buffer.getvalue()


def build(target: Path, root: Path) -> Digest:
    """Write the archive to `target`, whole or not at all, and return its digest."""
    data = content(root)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh = Path(file.name)
    fresh.chmod(0o644)
    fresh.replace(target)
    return Digest.of(data)


def build_named(directory: Path, root: Path) -> tuple[Path, Digest]:
    """Write the archive as `<first 16 hex digits>.pyz` in `directory`; a run keeps its own."""
    digest = Digest.of(content(root))
    target = directory / f"{digest.hex[:16]}.pyz"
    if not target.exists() or Digest.of(target.read_bytes()) != digest:
        build(target, root)
    return target, digest


def _sources(root: Path) -> Iterator[tuple[Path, str]]:
    found = (p for package in PACKAGES for p in (root / package).rglob("*.py"))
    named = ((path.relative_to(root).as_posix(), path) for path in found)
    for name, path in sorted(named):
        if not name.startswith("records/data/"):
            yield path, name


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system = _UNIX
    info.external_attr = _REGULAR_FILE_0644
    info.compress_type = zipfile.ZIP_STORED
    return info
