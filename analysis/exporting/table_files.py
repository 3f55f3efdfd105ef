"""The exported tables as Parquet or CSV files, written batch by batch.

Invariant: memory does not grow with the number of chunks; the same version of Arrow writes the
same bytes. about.json tells of every table beside it, and nothing that is no export is replaced.
Parquet holds texts as the records do; in CSV none begins a formula or steers a terminal.
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
from analysis.one_kind import require_one_kind
from analysis.reading import Run
from analysis.spreadsheet import inert
from analysis.tables import SYNTHETIC
from analysis.whole import whole_directory
from records.errors import ExportError

Form = Literal["parquet", "csv"]
FORMS: tuple[Form, ...] = ("parquet", "csv")
ABOUT_NAME = "about.json"
_BATCHES: tuple[tuple[Export, Callable[[Sequence[Run]], Iterator[pa.Table]]], ...] = (
    (WINDOWS, window_batches),
    (REQUESTS, request_batches),
    (CHUNKS, chunk_batches),
)


def write_tables(runs: Sequence[Run], seals: dict[str, str], out: Path, form: Form) -> list[Path]:
    """Write windows, requests, chunks and about.json to `out`; their paths.

    `seals`: the digest of each run's seal; a run that is still open has none. FormatError when
    synthetic and real runs are mixed. ExportError: `out` cannot be written, holds files of these
    names that are no export, or the tables of other runs in another form. DiskFullError: no space;
    an export that was there is as it was.
    """
    require_one_kind(runs)
    about = about_runs(runs, seals)
    told = (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode()
    _require_replaceable(out, form, told)
    write = _write_parquet if form == "parquet" else _write_csv
    names = [*_names(form), ABOUT_NAME]
    with whole_directory(out, names) as fresh:
        for table, batches in _BATCHES:
            write(table, batches(runs), fresh / f"{table.name}.{form}", about)
        (fresh / ABOUT_NAME).write_bytes(told)
    return [out / name for name in names]


def _names(form: Form) -> list[str]:
    return [f"{table.name}.{form}" for table, _ in _BATCHES]


def _require_replaceable(out: Path, form: Form, told: bytes) -> None:
    """ExportError where files would be lost, or told to be of runs that they are not of."""
    mine = [name for name in (*_names(form), ABOUT_NAME) if (out / name).is_file()]
    try:
        before = (out / ABOUT_NAME).read_bytes() if ABOUT_NAME in mine else b""
        exported = {"schema_version", "runs"} <= json.loads(before or b"{}").keys()
    except (ValueError, AttributeError):
        exported = False
    if mine and not exported:
        raise ExportError(
            f"{out / mine[0]} is there, and no {ABOUT_NAME} tells that it is an export",
            "name another directory with --out, or remove what is left of an export there",
        )
    others = [name for kind in FORMS if kind != form for name in _names(kind)]
    kept = [name for name in others if (out / name).is_file()]
    if kept and before != told:
        raise ExportError(
            f"{out / kept[0]} is of other runs, or of another version of the tables, and "
            f"{ABOUT_NAME} would no longer tell of it",
            "name another directory with --out, or remove that export",
        )


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
                **({"state": run.closing} if run.closed else {}),
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


def _flattened(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    if pa.types.is_list(column.type):
        return pc.binary_join(pc.cast(column, pa.list_(pa.string())), " ")
    if not pa.types.is_string(column.type):
        return column
    coded = column.combine_chunks().dictionary_encode()  # a column holds few different texts
    texts = pa.array([inert(text) for text in coded.dictionary.to_pylist()], pa.string())
    return pa.DictionaryArray.from_arrays(coded.indices, texts).dictionary_decode()
