"""The harness's archive, made again from sources: the bytes that a run names by digest.

Invariant: for the same sources the same bytes as kit/zipapp.py, which ships it; a test holds the
two together. It stands here again because an audit trusts no part of what it audits.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from audit.git import Git
from records.digest import Digest
from records.run_directory import is_regular

PACKAGES = ("records", "remote")
_MAIN = b"""\
import sys

from remote.main import main

sys.exit(main(sys.argv[1:]))
"""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE_0644 = 0o100644 << 16
_UNIX = 3


def archive(sources: Mapping[str, bytes]) -> bytes:
    """The archive of these sources, by name; what is no source of the harness is left out."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        file.writestr(_entry("__main__.py"), _MAIN)
        for name in sorted(filter(is_source, sources)):
            file.writestr(_entry(name), sources[name])
    return buffer.getvalue()


def is_source(name: str) -> bool:
    """Whether a file of the project, by path from its root, goes into the archive."""
    package, _, rest = name.partition("/")
    return package in PACKAGES and rest.endswith(".py") and not name.startswith("records/data/")


def sources_in(root: Path) -> dict[str, bytes]:
    """The sources of the harness as they stand in a work tree."""
    found = (path for package in PACKAGES for path in (root / package).rglob("*.py"))
    named = {path.relative_to(root).as_posix(): path for path in found}
    return {
        name: path.read_bytes()
        for name, path in named.items()
        if is_source(name) and is_regular(path)
    }


def versions(git: Git, root: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """(commit, sources) of each version of the harness in history, newest first.

    Commits that changed records alone share one version, which comes once. A blob is read once.
    """
    folders = [root / package for package in PACKAGES]
    prefix = root.resolve().relative_to(git.top.resolve()).as_posix()
    strip = 0 if prefix == "." else len(prefix) + 1
    known: dict[str, bytes] = {}
    seen: set[frozenset[tuple[str, str]]] = set()
    for commit in git.commits(*folders):
        files = {
            name[strip:]: blob
            for name, blob in git.files(commit, *folders).items()
            if is_source(name[strip:])
        }
        tree = frozenset(files.items())
        if tree in seen:
            continue
        seen.add(tree)
        known.update(git.blobs(blob for blob in files.values() if blob not in known))
        yield commit, {name: known[blob] for name, blob in files.items()}


def digest_of(sources: Mapping[str, bytes]) -> Digest:
    """The digest by which run.started names a harness."""
    return Digest.of(archive(sources))


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system = _UNIX
    info.external_attr = _REGULAR_FILE_0644
    info.compress_type = zipfile.ZIP_STORED
    return info
