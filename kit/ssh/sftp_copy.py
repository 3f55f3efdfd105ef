"""Copy trees over an open SFTP session, where rsync is missing on one of the two sides.

Invariant: the outcome is that of rsync: the target equals the source. Every file travels whole.
What a host names its files never leads out of the target: a directory's entry is one word, once.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

import paramiko

from records.errors import ForeignDirectoryError

_PARTIAL = ".kit-partial"


def fetch(sftp: paramiko.SFTPClient, source: Path, target: Path) -> None:
    """Make the directory `target` here equal `source` there; links arrive as links.

    ForeignDirectoryError where the host names a file as none can be named.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    entries = sftp.listdir_attr(str(source))
    require_names(source, [entry.filename for entry in entries])
    for entry in entries:
        there, here = source / entry.filename, target / entry.filename
        mode = entry.st_mode or 0
        if stat.S_ISDIR(mode):
            fetch(sftp, there, here)
        elif stat.S_ISLNK(mode):
            here.symlink_to(sftp.readlink(str(there)) or "")
        elif stat.S_ISREG(mode):
            sftp.get(str(there), str(here))


def require_names(directory: Path, names: Sequence[str]) -> None:
    """ForeignDirectoryError unless these can be what one directory holds: one word each, once.

    Joined to a path here, another would be written elsewhere; under a second one of its name, that
    was a link, where the link leads.
    """
    seen: set[str] = set()
    for name in names:
        if name in ("", ".", "..") or name in seen or "/" in name or "\0" in name:
            raise ForeignDirectoryError(
                f"{directory}: the host names a file {name!r} in it, as no directory can hold one",
                "nothing was taken: do not trust this host",
            )
        seen.add(name)


def put(sftp: paramiko.SFTPClient, source: Path, target: Path) -> None:
    """Bring a file or a tree there; a file appears whole or not at all."""
    if source.is_dir():
        make_directories(sftp, target)
        for path in sorted(source.iterdir()):
            put(sftp, path, target / path.name)
        return
    make_directories(sftp, target.parent)
    partial = f"{target}{_PARTIAL}"
    sftp.put(str(source), partial)
    sftp.chmod(partial, stat.S_IMODE(source.stat().st_mode))
    sftp.posix_rename(partial, str(target))


def make_directories(sftp: paramiko.SFTPClient, path: Path) -> None:
    """mkdir -p."""
    try:
        sftp.stat(str(path))
    except FileNotFoundError:
        make_directories(sftp, path.parent)
        try:
            sftp.mkdir(str(path))
        except OSError:
            sftp.stat(str(path))  # somebody else made it, or it cannot be made: then this fails
