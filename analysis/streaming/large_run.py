"""Reading a run of any size: small ones into memory, large ones in batches from a cache.

Invariant: whichever way, the records were verified, and the figures are the same.
"""

from __future__ import annotations

from pathlib import Path

from analysis.reading import Run, read_run
from records.run_directory import RunDirectory

# Some four million chunks; less is read into memory in seconds.
LARGE_BYTES = 64 << 20


def read_run_in_batches(
    directory: RunDirectory, cache: Path, large_bytes: int | None = None
) -> Run:
    """As `read_run`; of a sealed run with a large journal the requests are kept under `cache`.

    `large_bytes`: what is large; default: LARGE_BYTES.
    ChainError, FormatError as `read_run`; OSError where `cache` cannot be written.
    """
    if not directory.is_sealed or not directory.events.is_file():
        return read_run(directory)
    large = LARGE_BYTES if large_bytes is None else large_bytes
    if directory.events.stat().st_size < large:
        return read_run(directory)
    # Arrow takes a while to load, and small runs do without.
    from analysis.streaming.parquet_cache import read_cached

    return read_cached(directory, cache)
