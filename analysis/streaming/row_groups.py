"""Request columns as an Arrow table, and back: one row a request, its chunks and steps as lists.

Invariant: `as_columns(as_table(columns))` has the same numbers, text and order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analysis.definitions.columns import ChunkColumns
from analysis.requests import SCALARS, RequestColumns

Ints = NDArray[np.int64]

_LISTS = ("chunk_ns", "chunk_tokens", "steps", "merged_at")
SCHEMA = pa.schema(
    [
        *[pa.field(name, pa.int64(), nullable=False) for name in (*SCALARS, "outcome")],
        pa.field("ramp", pa.bool_(), nullable=False),
        pa.field("finish_reason", pa.string(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
        pa.field("tokens_digest", pa.binary(), nullable=False),
        *[
            pa.field(
                name, pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False
            )
            for name in _LISTS
        ],
    ]
)
# Times grow by little from chunk to chunk, so their differences are what is stored.
DELTA_COLUMNS = (*SCALARS, "outcome", *[f"{name}.list.element" for name in _LISTS])


def as_table(columns: RequestColumns) -> pa.Table:
    """One row a request."""
    chunks = columns.chunks
    merged_offsets = np.concatenate(([0], np.cumsum(columns.merged)))
    arrays = [
        *[pa.array(columns.scalars[name]) for name in SCALARS],
        pa.array(columns.outcome),
        pa.array(columns.ramp),
        pa.array(columns.finish_reason, pa.string()),
        pa.array(columns.error, pa.string()),
        pa.array(columns.tokens_digest, pa.binary()),
        _list(chunks.request_offsets, chunks.chunk_ns),
        _list(chunks.request_offsets, chunks.chunk_tokens),
        _list(columns.step_offsets, columns.steps),
        _list(merged_offsets, columns.merged_at),
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def as_columns(table: pa.Table) -> RequestColumns:
    """The requests of a table that `as_table` made."""
    flat = {name: _flat(table, name) for name in (*SCALARS, "outcome", "ramp")}
    request_offsets, chunk_ns = _parts(table, "chunk_ns")
    step_offsets, steps = _parts(table, "steps")
    merged_offsets, merged_at = _parts(table, "merged_at")
    return RequestColumns(
        {name: flat[name] for name in SCALARS},
        flat["outcome"],
        flat["ramp"],
        np.diff(merged_offsets),
        tuple(table["finish_reason"].to_pylist()),
        tuple(table["error"].to_pylist()),
        ChunkColumns(
            request_offsets,
            chunk_ns,
            _parts(table, "chunk_tokens")[1],
            flat["sent_ns"],
            flat["scheduled_ns"],
        ),
        steps,
        step_offsets,
        merged_at,
        tuple(table["tokens_digest"].to_pylist()),
    )


def _list(offsets: Ints, values: Ints) -> pa.ListArray:
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)),
        pa.array(values),
        type=pa.list_(pa.field("element", pa.int64(), nullable=False)),
    )


def _flat(table: pa.Table, name: str) -> NDArray[Any]:
    column: NDArray[Any] = table[name].to_numpy()
    return column


def _parts(table: pa.Table, name: str) -> tuple[Ints, Ints]:
    """Offsets from 0, and the values of all rows."""
    (chunk,) = table[name].chunks or (pa.array([], SCHEMA.field(name).type),)
    offsets = chunk.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0], chunk.flatten().to_numpy()
