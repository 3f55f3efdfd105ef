"""Writing that is on disk when it returns.

Invariant: a function here either returns with its bytes and their directory entry flushed, or
raises; a file replaced here is at any moment the old one or the new one.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from records.errors import DiskFullError

# EFBIG: RLIMIT_FSIZE or the file system's own limit; for whoever writes it is the same want.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write(fd: int, data: bytes, path: Path, what: str) -> None:
    """Write all of `data` to `fd` and flush it. DiskFullError names `what` could not be written."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise DiskFullError(
            f"no space left to record {what} in {path}",
            remedy="free space on this disk, then start the same command again: it resumes",
        ) from error


def replace(path: Path, data: bytes) -> None:
    """Put a file with these bytes at `path`, by way of `.<name>.new` beside it."""
    fresh = scratch_of(path)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write(fd, data, path, path.name)
    finally:
        os.close(fd)
    fresh.replace(path)
    flush_directory(path.parent)


def scratch_of(path: Path) -> Path:
    """Where `replace` writes before renaming; a stop may leave this file behind."""
    return path.with_name(f".{path.name}.new")


def flush_directory(path: Path) -> None:
    """Flush the entries of a directory: a new file is durable only with its name."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
