"""Runs as the Arrow tables of analysis/exporting/tables.py, a batch at a time.

Invariant: each batch has the columns of its table in their order; what the records do not know (-1
there) is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analysis.exporting.tables import CHUNKS, REQUESTS, WINDOWS, Export
from analysis.reading import Boot, MeasuredWindow, Run
from analysis.requests import RequestColumns
from records.digest import Digest
from records.load import Prompts
from records.measurement import OUTCOMES, ClientReport
from records.schema import Counters

_TYPES = {
    "int64": pa.int64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "list of int64": pa.list_(pa.int64()),
}
_REPORT = {
    "planned": "client_planned_requests",
    "completed": "client_completed_requests",
    "failed": "client_failed_requests",
    "cancelled": "client_cancelled_requests",
    "merged": "client_merged_chunks",
    "wall_ns": "wall_ns",
}
_COUNTERS = {"prefix_cache_hits": "server_prefix_cache_hits_tokens"}
_Cells = dict[str, Any]


def schema_of(table: Export) -> pa.Schema:
    """The table's columns."""
    fields = [pa.field(f.name, _TYPES[f.kind], nullable=bool(f.missing)) for f in table.fields]
    return pa.schema(fields)


def window_batches(runs: Sequence[Run]) -> Iterator[pa.Table]:
    """One table: a row a window."""
    rows = [_window_row(*one) for one in _windows(runs)]
    yield pa.Table.from_pylist(rows, schema=schema_of(WINDOWS))


def request_batches(runs: Sequence[Run]) -> Iterator[pa.Table]:
    """A table for each batch of a window's requests."""
    for run, boot, window in _windows(runs):
        usable = window in boot.usable_windows
        for part in window.source.batches():
            same = _same(run, boot, window) | {"arm": boot.started.arm, "usable": usable}
            columns = _request_columns(part, window.window.prompts)
            yield _table(REQUESTS, len(part), same, columns)


def chunk_batches(runs: Sequence[Run]) -> Iterator[pa.Table]:
    """A table for each batch of a window's requests: a row a chunk."""
    for run, boot, window in _windows(runs):
        for part in window.source.batches():
            size = part.chunks.chunk_ns.size
            yield _table(CHUNKS, size, _same(run, boot, window), _chunk_columns(part))


def _windows(runs: Sequence[Run]) -> Iterator[tuple[Run, Boot, MeasuredWindow]]:
    for run in sorted(runs, key=lambda run: run.run_id):
        for boot in run.boots:
            for window in boot.windows:
                yield run, boot, window


def _same(run: Run, boot: Boot, window: MeasuredWindow) -> _Cells:
    return {
        "run": run.run_id,
        "synthetic": run.started.synthetic,
        "boot": boot.started.boot,
        "window": window.window.id,
    }


def _window_row(run: Run, boot: Boot, window: MeasuredWindow) -> _Cells:
    planned = boot.planned
    parts = [
        (len(part), int(part.ramp.sum()), part.chunks.chunk_ns.size, part.chunks.chunk_tokens.sum())
        for part in window.source.batches()
    ]
    requests, ramp, chunks, tokens = (int(sum(column)) for column in zip(*parts, strict=True))
    row: _Cells = _same(run, boot, window) | {
        "plan": run.started.plan.id,
        "arm": boot.started.arm,
        "block": planned.block if planned else None,
        "position": planned.position if planned else None,
        "boot_outcome": boot.outcome,
        "concurrency": window.window.load.concurrency,
        "client": window.window.client,
        "usable": window in boot.usable_windows,
        "void_reasons": "; ".join(window.void),
        "server_age_ns": window.started.server_age_ns,
        "requests": requests,
        "ramp_requests": ramp,
        "chunks": chunks,
        "output_tokens": tokens,
    }
    ended = window.ended
    if ended is not None:
        for name in ClientReport.__dataclass_fields__:
            if name != "chunks":
                value = getattr(ended.report, name)
                unknown = value == -1 and name.startswith("lag_")  # stamps are the user's
                row[_REPORT.get(name, f"client_{name}")] = None if unknown else value
        for name in Counters.__dataclass_fields__:
            value = getattr(ended.counters, name)
            row[_COUNTERS.get(name, f"server_{name}")] = None if value == -1 else value
        row["host_steal_ppm"] = ended.steal_ppm
    return row


def _request_columns(part: RequestColumns, prompts: Prompts) -> _Cells:
    chunks, scalars = part.chunks, part.scalars
    none = chunks.chunk_counts() == 0
    steps = np.diff(part.step_offsets)
    return {
        "request": pa.array(scalars["index"]),
        "outcome": pa.array([OUTCOMES[number] for number in part.outcome.tolist()]),
        "ramp": pa.array(part.ramp),
        "scheduled_ns": pa.array(scalars["scheduled_ns"]),
        "sent_ns": _known(scalars["sent_ns"]),
        "first_byte_after_ns": _known(scalars["first_byte_ns"]),
        "end_after_ns": _known(scalars["end_ns"]),
        "http_status": pa.array(scalars["status"], mask=scalars["status"] <= 0),
        "prompt_tokens": _known(scalars["prompt_tokens"]),
        "completion_tokens": _known(scalars["completion_tokens"]),
        "cached_tokens": _known(scalars["cached_tokens"]),
        "chunks": pa.array(chunks.chunk_counts()),
        "output_tokens": pa.array(chunks.output_tokens()),
        "first_chunk_tokens": pa.array(chunks.first_chunk_tokens(), mask=none),
        "first_chunk_ns": pa.array(chunks.first_ns(), mask=none),
        "last_chunk_ns": pa.array(chunks.last_ns(), mask=none),
        "merged_chunks": pa.array(part.merged),
        "finish_reason": pa.array([text or None for text in part.finish_reason], pa.string()),
        "error": pa.array([text or None for text in part.error], pa.string()),
        "accepted_tokens_by_step": pa.ListArray.from_arrays(
            pa.array(part.step_offsets, pa.int32()), pa.array(part.steps), mask=pa.array(steps == 0)
        ),
        # Request i sends prompt i modulo their number (remote/prompts/source.py).
        "prompt": pa.nulls(len(part), pa.int64())
        if prompts.unique
        else pa.array(scalars["index"] % prompts.count),
        "tokens_digest": pa.array(
            [str(Digest(one.hex())) if one else None for one in part.tokens_digest], pa.string()
        ),
    }


def _chunk_columns(part: RequestColumns) -> _Cells:
    chunks = part.chunks
    counts, starts = chunks.chunk_counts(), chunks.request_offsets[:-1]
    first = np.zeros(chunks.chunk_ns.size, dtype=np.bool_)
    first[starts[counts > 0]] = True
    merged = np.zeros(chunks.chunk_ns.size, dtype=np.bool_)
    merged[np.repeat(starts, part.merged) + part.merged_at] = True
    return {
        "request": pa.array(np.repeat(part.scalars["index"], counts)),
        "chunk": pa.array(np.arange(chunks.chunk_ns.size) - np.repeat(starts, counts)),
        "received_ns": pa.array(chunks.chunk_ns),
        "gap_ns": pa.array(np.diff(chunks.chunk_ns, prepend=0), mask=first),
        "tokens": pa.array(chunks.chunk_tokens),
        "merged": pa.array(merged),
    }


def _known(values: NDArray[np.int64]) -> pa.Array:
    return pa.array(values, mask=values == -1)


def _table(table: Export, rows: int, same: _Cells, columns: _Cells) -> pa.Table:
    schema = schema_of(table)
    arrays = [
        columns[field.name]
        if field.name in columns
        else pa.repeat(pa.scalar(same[field.name], field.type), rows)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
