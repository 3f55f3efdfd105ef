"""What an incremental audit may keep of an earlier one: keys of runs that were clean.

Invariant: a key is a digest over everything that the checks of scope "meaning" can see: the run's
name and seal, the auditor's own sources and interpreter, and images/ with its history. The bytes
below the seal are verified at every audit; so a known key with an intact run is the same question
to the same function, and the answer was: nothing found.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from audit.git import Git
from audit.repository import RunView
from records.digest import Digest

_PACKAGES = ("analysis", "audit", "records")


@dataclass(frozen=True, slots=True)
class Context:
    """What all runs of one audit share, as a digest."""

    digest: Digest

    @classmethod
    def of(cls, root: Path) -> Context:
        """The auditor that is running, and the locks of the project at `root`."""
        state = hashlib.sha256()
        for part in (*_auditor(), *_images(root)):
            state.update(len(part).to_bytes(8, "big") + part)
        return cls(Digest(state.hexdigest()))

    def key(self, run: RunView) -> str:
        """The key of a sealed run."""
        text = f"{self.digest} {run.name} {run.directory.seal_digest}"
        return str(Digest.of(text.encode()))


@cache
def _auditor() -> tuple[bytes, ...]:
    """Names and contents of the sources that are running; they do not change under way."""
    parts = [sys.version.encode()]
    home = Path(__file__).resolve().parents[1]
    for package in _PACKAGES:
        for path in sorted((home / package).rglob("*.py")):
            name = path.relative_to(home).as_posix()
            if not name.startswith("records/data/"):
                parts += [name.encode(), path.read_bytes()]
    return tuple(parts)


def _images(root: Path) -> Iterator[bytes]:
    """Locks as they are, and the commits that changed them: a commit names all before it."""
    folder = root / "images"
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(root).as_posix().encode()
            yield path.read_bytes()
    git = Git.find(root)
    if git is not None and folder.is_dir():
        yield " ".join(git.commits(folder)).encode()
