"""What the operating system refused, as an error that names the place and what to type next.

Invariant: only refusals that a user can lift are translated; anything else stays what it is, a bug.
"""

from __future__ import annotations

import errno
from pathlib import Path

from kit.home import Home
from records.durable import NO_SPACE
from records.errors import DiskFullError, ForeignDirectoryError, HostUnfitError, KitError

_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO})
_SHOWN = 80  # characters of a name that is too long anyway
_IN_THE_WAY = frozenset({errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENOTEMPTY})


def as_kit_error(error: OSError, home: Home) -> KitError | None:
    """The error for the user, or None where no user can help it.

    DiskFullError: no space. HostUnfitError: not allowed, or the disk fails. ForeignDirectoryError:
    something of another kind stands at the path.
    """
    places = f"KIT_HOME ({home.path}), KIT_DATA ({home.data}), KIT_OUT ({home.out})"
    if error.errno in NO_SPACE:
        # A failed write, unlike a failed open, does not know the name of its file.
        where = f"at {error.filename}" if error.filename else "where this command writes"
        return DiskFullError(
            f"no space left {where}: {error.strerror}",
            f"free space, or put on another disk what is full of {places}, or standard output",
        )
    if not isinstance(error.filename, (str, bytes)):
        return None
    path = (
        error.filename.decode(errors="replace")
        if isinstance(error.filename, bytes)
        else (error.filename)
    )
    if error.errno == errno.ENAMETOOLONG:
        return HostUnfitError(f"{path[:_SHOWN]}…: {error.strerror}", "name it shorter")
    if error.errno in _REFUSED:
        return HostUnfitError(
            f"{path}: {error.strerror}",
            f"give yourself the right to it (ls -ld {path}), or name other places: {places}",
        )
    if error.errno in _IN_THE_WAY:
        found = _in_the_way(Path(path))
        return ForeignDirectoryError(
            f"{found} is in the way: {error.strerror}",
            f"move it away (ls -ld {found}), or name other places: {places}",
        )
    return None


def _in_the_way(path: Path) -> Path:
    """The file that stands where a directory of this path belongs; the path itself if none does."""
    return next((p for p in reversed(path.parents) if p.exists() and not p.is_dir()), path)
