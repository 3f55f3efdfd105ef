"""The exported tables as Parquet or CSV files, written batch by batch.

Invariant: memory does not grow with the number of chunks; the same version of Arrow writes the
same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from analysis.exporting.rows import chunk_batches, request_batches, schema_of, window_batches
from analysis.exporting.tables import CHUNKS, REQUESTS, SCHEMA_VERSION, WINDOWS, Export
from analysis.frames import require_one_kind
from analysis.reading import Run
from analysis.tables import SYNTHETIC

Form = Literal["parquet", "csv"]
_BATCHES: tuple[tuple[Export, Callable[[Sequence[Run]], Iterator[pa.Table]]], ...] = (
    (WINDOWS, window_batches),
    (REQUESTS, request_batches),
    (CHUNKS, chunk_batches),
)


def write_tables(runs: Sequence[Run], seals: dict[str, str], out: Path, form: Form) -> list[Path]:
    """Write windows, requests, chunks and about.json to `out`; their paths.

    `seals`: the digest of each run's seal; a run that is still open has none. FormatError when
    synthetic and real runs are mixed.
    """
    require_one_kind(runs)
    out.mkdir(parents=True, exist_ok=True)
    about = about_runs(runs, seals)
    write = _write_parquet if form == "parquet" else _write_csv
    paths = []
    for table, batches in _BATCHES:
        paths.append(out / f"{table.name}.{form}")
        write(table, batches(runs), paths[-1], about)
    paths.append(out / "about.json")
    paths[-1].write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return paths


def about_runs(runs: Sequence[Run], seals: dict[str, str]) -> dict[str, Any]:
    """What a reader must know of an export, as plain values."""
    synthetic = any(run.started.synthetic for run in runs)
    return {
        "schema_version": SCHEMA_VERSION,
        "synthetic": synthetic,
        **({"warning": SYNTHETIC} if synthetic else {}),
        "license": "CC-BY-4.0",
        "runs": [
            {
                "run": run.run_id,
                "seal": seals.get(run.run_id),
                "plan": run.started.plan.id,
                "plan_digest": str(run.started.plan_digest),
                "harness_digest": str(run.started.harness_digest),
                "engine_digest": str(run.engines[0].digest) if run.engines else None,
            }
            for run in sorted(runs, key=lambda run: run.run_id)
        ],
    }


def _write_parquet(
    table: Export, batches: Iterable[pa.Table], path: Path, about: dict[str, Any]
) -> None:
    told = {"kit.table": table.name, "kit.about": json.dumps(about, sort_keys=True)}
    schema = schema_of(table).with_metadata(told)
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1) as writer:
        for batch in batches:
            if batch.num_rows:
                writer.write_table(batch.replace_schema_metadata(told), batch.num_rows)


def _write_csv(
    table: Export,
    batches: Iterable[pa.Table],
    path: Path,
    about: dict[str, Any],  # noqa: ARG001
) -> None:
    schema = pa.schema([pa.field(f.name, _in_csv(f.type)) for f in schema_of(table)])
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    with path.open("wb") as file:
        file.write((",".join(schema.names) + "\n").encode())
        for batch in batches:
            if batch.num_rows:
                columns = [_flattened(column) for column in batch.columns]
                pyarrow.csv.write_csv(pa.Table.from_arrays(columns, schema=schema), file, options)


def _in_csv(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_list(kind) else kind


def _flattened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_list(column.type):
        return column
    return pc.binary_join(pc.cast(column, pa.list_(pa.string())), " ")
