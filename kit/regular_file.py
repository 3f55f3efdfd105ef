"""Opening a file that a person named: a regular one, or an error at once.

Invariant: neither a pipe nobody writes to nor a device without an end can hold the kit up.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path) -> BinaryIO:
    """Open for reading; OSError where it cannot be, or is a directory, pipe, socket or device."""
    # Without O_NONBLOCK the opening of a FIFO waits for a writer; regular files do not mind it.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb")
