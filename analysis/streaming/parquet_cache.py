"""The requests of large runs as Parquet beside the records, made once, read in batches.

Invariant: an entry is named by the digest of its run's seal and holds what the journal under that
seal says; one that is not whole, byte for byte as it was written, is made again. The chain is
verified at every reading, so a changed journal never meets an old entry. Against whoever writes a
false entry with its digests nothing is claimed: the audit reads the journals themselves.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from analysis.reading import Gathering, RequestSource, Run, read_run
from analysis.requests import RequestColumns, RequestGatherer
from analysis.streaming.row_groups import DELTA_COLUMNS, SCHEMA, as_columns, as_table
from records.digest import Digest
from records.run_directory import RunDirectory

# Raised with any change to what an entry holds or how it is laid out.
CACHE_FORMAT = 3
# A row group: 4 MiB a column.
BATCH_CHUNKS = 1 << 19
_DATA, _INDEX = "requests.parquet", "index.json"


def read_cached(directory: RunDirectory, cache: Path) -> Run:
    """As `read_run` of a sealed run, its requests from `cache`, where an entry is made if need be.

    ChainError, FormatError as `read_run`; OSError where `cache` cannot be written.
    """
    entry = cache / f"{directory.seal_digest.hex}-{CACHE_FORMAT}"
    known = _Entry.open(entry)
    if known is not None:
        return read_run(directory, _Reading(known))
    return _make(directory, entry)


def _make(directory: RunDirectory, entry: Path) -> Run:
    entry.parent.mkdir(parents=True, exist_ok=True)
    # Beside its place, so that it can be moved there in one step, whole.
    with tempfile.TemporaryDirectory(dir=entry.parent, prefix="making-") as name:
        made = Path(name) / "entry"
        made.mkdir()
        with pq.ParquetWriter(
            made / _DATA,
            SCHEMA,
            compression="zstd",
            compression_level=1,
            use_dictionary=["finish_reason", "error"],
            column_encoding=dict.fromkeys(DELTA_COLUMNS, "DELTA_BINARY_PACKED"),
            write_statistics=False,
        ) as writer:
            store = _Writing(entry / _DATA, writer)
            run = read_run(directory, store)
        (made / _INDEX).write_text(_index(made / _DATA, store.row_groups), encoding="utf-8")
        if entry.exists():
            shutil.rmtree(entry)
        made.rename(entry)
    return run


def _index(data: Path, windows: list[list[int]]) -> str:
    with data.open("rb") as file:
        digest = Digest.of_file(file)
    value = {
        "format": CACHE_FORMAT,
        "bytes": data.stat().st_size,
        "digest": str(digest),
        "windows": windows,
    }
    return json.dumps({**value, "index_digest": _digest_of(value)}) + "\n"


def _digest_of(index: dict[str, Any]) -> str:
    """Of an index without this digest: row groups given to other windows would change figures."""
    return str(Digest.of(json.dumps(index, sort_keys=True).encode()))


@dataclass(frozen=True, slots=True)
class _Entry:
    """A whole entry: its data, and the row groups of each window in the journal's order."""

    data: Path
    windows: list[list[int]]

    @classmethod
    def open(cls, path: Path) -> _Entry | None:
        """The entry at `path`; None where there is none, or it is not as it was written."""
        try:
            index = json.loads((path / _INDEX).read_text(encoding="utf-8"))
            with (path / _DATA).open("rb") as file:
                digest = Digest.of_file(file)
            if index.pop("index_digest") != _digest_of(index):
                return None
            if (index["format"], index["digest"]) != (CACHE_FORMAT, str(digest)):
                return None
            return cls(path / _DATA, index["windows"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class _Stored:
    """The requests of one window in row groups of a file."""

    data: Path
    row_groups: list[int]

    def batches(self) -> Iterator[RequestColumns]:
        """One row group after the other."""
        if not self.row_groups:
            yield RequestGatherer().columns()
            return
        with pq.ParquetFile(self.data, memory_map=True) as file:
            for number in self.row_groups:
                yield as_columns(file.read_row_group(number))


class _Reading:
    """A store that has every request from before."""

    has_all = True

    def __init__(self, entry: _Entry) -> None:
        self._entry = entry
        self._begun = 0

    def begin(self) -> Gathering:
        """The next window of the journal."""
        self._begun += 1
        return _Known(_Stored(self._entry.data, self._entry.windows[self._begun - 1]))


@dataclass(frozen=True, slots=True)
class _Known:
    """Gathers nothing: it is all there."""

    stored: _Stored

    def add(self, requests: list[dict[str, Any]]) -> None:  # noqa: ARG002
        """Never called: the reader does not decode what a store has."""
        raise AssertionError("requests were decoded that are in the cache")

    def close(self) -> RequestSource:
        """The window's requests."""
        return self.stored


class _Writing:
    """A store that writes row groups; `row_groups`: those of each window."""

    has_all = False

    def __init__(self, data: Path, writer: pq.ParquetWriter) -> None:
        self._data = data
        self._writer = writer
        self._written = 0
        self.row_groups: list[list[int]] = []

    def begin(self) -> Gathering:
        """A window that takes its first requests."""
        self.row_groups.append([])
        return _Filling(self, self._data, self.row_groups[-1])

    def write(self, columns: RequestColumns) -> int:
        """Write one row group; its number."""
        self._writer.write_table(as_table(columns), row_group_size=max(1, len(columns)))
        self._written += 1
        return self._written - 1


class _Filling:
    """One window on its way into row groups of at least BATCH_CHUNKS chunks, but the last."""

    def __init__(self, store: _Writing, data: Path, row_groups: list[int]) -> None:
        self._store = store
        self._data = data
        self._row_groups = row_groups
        self._gatherer = RequestGatherer()

    def add(self, requests: list[dict[str, Any]]) -> None:
        """Take a batch, and write when there is enough."""
        self._gatherer.add(requests)
        if self._gatherer.chunks >= BATCH_CHUNKS:
            self._flush()

    def close(self) -> RequestSource:
        """Write the rest."""
        if len(self._gatherer):
            self._flush()
        return _Stored(self._data, self._row_groups)

    def _flush(self) -> None:
        self._row_groups.append(self._store.write(self._gatherer.columns()))
        self._gatherer = RequestGatherer()
