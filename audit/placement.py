"""Where the records lie with respect to git: in the project's own repository, behind no link.

Invariant: the repository is asked for at the project, never at the records, so that one planted
beside or around them cannot answer in its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from audit.git import Git
from audit.repository import RepositoryView


def records_git(repository: RepositoryView) -> Git | None:
    """The project's repository; that of the records only where they lie outside the project."""
    inside = repository.data.is_relative_to(repository.root)
    return repository.git(repository.root if inside else repository.data)


def misplaced(root: Path, directory: Path) -> Iterator[tuple[Path, str]]:
    """What stands between the project's git and a directory: (path, "a link" or "a repository").

    Every step from the project down to the directory, then everything below it.
    """
    at = root
    parts = directory.relative_to(root).parts if directory.is_relative_to(root) else ()
    for part in parts:
        at /= part
        if at.is_symlink():
            yield at, "a link"
            return
        if at != directory and os.path.lexists(at / ".git"):
            yield at / ".git", "a repository"
    if not parts:
        at = directory
    for folder, folders, files in os.walk(at):
        if ".git" in (*folders, *files) and (parts or folder != str(at)):
            yield Path(folder) / ".git", "a repository"
        folders[:] = sorted(name for name in folders if name != ".git")
