"""Files beside the journal: redacted, compressed, written once, named by digest in an event.

Invariant: the same text gives the same bytes; a file that exists is never written again.
"""

from __future__ import annotations

import gzip
import os

from records.digest import Digest
from remote.context import Context


def keep_compressed(context: Context, name: str, raw: bytes) -> Digest:
    """Keep `raw` under `name` (relative to the run, ending .gz); the digest of the file."""
    text = context.redact(raw.decode("utf-8", "replace"))
    data = gzip.compress(text.encode(), mtime=0)
    path = context.records / name
    path.parent.mkdir(exist_ok=True)
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return Digest.of(data)
