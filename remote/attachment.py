"""Files beside the journal: redacted, compressed, written once, named by digest in an event.

Invariant: the same text gives the same bytes; a file that exists is never written again.
"""

from __future__ import annotations

import gzip
import os

from records import durable
from records.digest import Digest
from records.errors import DiskFullError
from remote.context import Context


def keep_compressed(context: Context, name: str, raw: bytes) -> Digest:
    """Keep `raw` under `name` (relative to the run, ending .gz); the digest of the file.

    DiskFullError: nothing of it is kept.
    """
    text = context.redact(raw.decode("utf-8", "replace"))
    data = gzip.compress(text.encode(), mtime=0)
    path = context.records / name
    path.parent.mkdir(exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        durable.write(fd, data, path, name)
    except (OSError, DiskFullError):
        path.unlink()  # half a file must not be sealed with the run
        raise
    finally:
        os.close(fd)
    return Digest.of(data)
