"""The exported tables: what the records hold, in every reader, by the schema on its page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from sealed_run import Shape, make_run, small_plan

from analysis.exporting.rows import schema_of
from analysis.exporting.table_files import write_tables
from analysis.exporting.tables import EXPORTS, document
from analysis.reading import Run, read_run
from analysis.spreadsheet import inert
from analysis.streaming import parquet_cache
from analysis.streaming.large_run import read_run_in_batches
from analysis.table import as_object
from analysis.tables import study_tables
from records.errors import FormatError
from records.run_directory import RunDirectory
from records.schema import WindowRequests

ROOT = Path(__file__).parents[3]
REAL = RunDirectory(ROOT / "records" / "data" / "20261130T115921Z-smoke-cpu-5d0eba")
PAGE = ROOT / "analysis" / "exporting" / "TABLES.md"


def odd(event):
    """The first request of a window never left; the second's first two chunks were merged."""
    if not isinstance(event, WindowRequests) or event.requests[0].index != 0:
        return event
    never, second, *others = event.requests
    never = replace(
        never, outcome="cancelled", error="window ended", sent_ns=-1, first_byte_ns=-1, end_ns=-1,
        status=-1, chunk_ns=(), chunk_tokens=(), completion_tokens=-1, prompt_tokens=-1,
        cached_tokens=-1, finish_reason="", step_accepted=(),
    )  # fmt: skip
    return replace(event, requests=(never, replace(second, merged=(0, 1)), *others))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    shape = Shape(edit=odd, interrupt_first=True, void_first_window=True)
    return read_run(make_run(tmp_path_factory.mktemp("runs") / "run-1", small_plan(), shape))


@pytest.fixture(scope="module")
def out(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    write_tables([run], {"run-1": "sha256:ab"}, out, "parquet")
    write_tables([run], {"run-1": "sha256:ab"}, out, "csv")
    return out


def test_the_page_tells_the_schema():
    assert PAGE.read_text(encoding="utf-8") == document()


@pytest.mark.parametrize("table", EXPORTS, ids=lambda t: t.name)
def test_every_reader_sees_the_same(out, table):
    file = out / f"{table.name}.parquet"
    with_pandas = pd.read_parquet(file, dtype_backend="pyarrow")
    with_polars = pl.read_parquet(file)
    with_duckdb = duckdb.sql(f"SELECT * FROM '{file}'")  # noqa: S608
    names = [field.name for field in table.fields]
    assert list(with_pandas.columns) == with_polars.columns == with_duckdb.columns == names
    told = [tuple(row.values()) for row in pq.read_table(file).to_pylist()]
    assert with_polars.rows() == told
    assert with_duckdb.fetchall() == told
    assert len(with_pandas) == len(told) > 0
    first = with_pandas.astype(object).where(with_pandas.notna(), None).iloc[0]
    assert [np.asarray(v).tolist() for v in first] == [np.asarray(v).tolist() for v in told[0]]


@pytest.mark.parametrize("table", EXPORTS, ids=lambda t: t.name)
def test_key_names_a_row_and_null_stands_only_where_told(out, table):
    frame = pl.read_parquet(out / f"{table.name}.parquet")
    assert frame.select(table.key).is_duplicated().sum() == 0
    for field in table.fields:
        if not field.missing:
            assert frame[field.name].null_count() == 0, field.name


@pytest.mark.parametrize("table", EXPORTS, ids=lambda t: t.name)
def test_csv_holds_what_parquet_does(out, table):
    types = {"string": pl.String, "bool": pl.Boolean, "list of int64": pl.String}
    kinds = {field.name: types.get(field.kind, pl.Int64) for field in table.fields}
    got = pl.read_csv(out / f"{table.name}.csv", schema_overrides=kinds)
    want = pl.read_parquet(out / f"{table.name}.parquet")
    for field in table.fields:
        column = want[field.name]
        if field.kind == "list of int64":
            column = column.cast(pl.List(pl.String)).list.join(" ")
        # CSV has no word for an empty text beside a missing one.
        have, need = (
            [None if value == "" else value for value in one.to_list()]
            for one in (got[field.name], column)
        )
        assert have == need, field.name


def test_words_of_a_server_are_no_formula_in_csv_and_stay_as_they_are_in_parquet(tmp_path):
    said = ['=HYPERLINK("http://x",A1)', "+1", "-1", "@x", "\t=1", "x;=1", "'", "a,b", "ok\x1b[2J"]

    def hostile(event):
        if not isinstance(event, WindowRequests):
            return event
        words = (said * 2)[event.requests[0].index :]
        return replace(
            event,
            requests=tuple(
                replace(request, finish_reason=word, error="")
                for request, word in zip(event.requests, words, strict=False)
            ),
        )

    plan = small_plan(blocks=1, requests=2 * len(said))
    run = read_run(make_run(tmp_path / "run-1", plan, Shape(edit=hostile)))
    for form in ("csv", "parquet"):
        write_tables([run], {}, tmp_path / form, form)
    exact = pl.read_parquet(tmp_path / "parquet" / "requests.parquet")["finish_reason"].to_list()
    assert set(exact) == set(said)
    file = tmp_path / "csv" / "requests.csv"
    cells = pl.read_csv(file, infer_schema=False)["finish_reason"].to_list()
    assert cells == [inert(text) for text in exact]
    assert not any(cell.startswith(("=", "+", "-", "@", "\t")) for cell in cells)
    assert b"\x1b" not in file.read_bytes()
    # Numbers stay numbers.
    assert pl.read_csv(file)["sent_ns"].dtype == pl.Int64


def test_chunks_are_those_of_the_records(run, out):
    chunks = pl.read_parquet(out / "chunks.parquet")
    windows = [(b, w) for b in run.boots for w in b.windows]
    assert chunks.height == sum(w.requests.chunks.chunk_ns.size for _, w in windows)
    boot, window = windows[-1]
    one = chunks.filter(boot=boot.started.boot, window=window.window.id)
    assert one["received_ns"].to_list() == window.requests.chunks.chunk_ns.tolist()
    assert one["tokens"].to_list() == window.requests.chunks.chunk_tokens.tolist()
    assert one.filter(pl.col("gap_ns").is_not_null())["gap_ns"].to_list() == (
        window.requests.chunks.gaps_ns().tolist()
    )
    assert one.filter(merged=True).select("request", "chunk").rows() == [(1, 0), (1, 1)]


def test_what_did_not_happen_is_null(out):
    requests = pl.read_parquet(out / "requests.parquet")
    never = requests.filter(outcome="cancelled")
    assert never.height > 0
    for name in ("sent_ns", "first_byte_after_ns", "end_after_ns", "http_status", "prompt_tokens"):
        assert never[name].null_count() == never.height, name
    for column in requests.select(pl.selectors.integer()):
        assert -1 not in column.to_list(), column.name


def test_answers_to_a_prompt_are_told_by_their_tokens(tmp_path):
    """What the table of texts counts comes out of the exported requests alone."""
    run = read_run(REAL)
    write_tables([run], {}, tmp_path, "parquet")
    requests = pl.read_parquet(tmp_path / "requests.parquet")
    recorded = [
        request["tokens_digest"]
        for line in REAL.events.read_text().splitlines()
        if (event := json.loads(line))["type"] == "window.requests"
        for request in event["value"]["requests"]
    ]
    assert requests["tokens_digest"].to_list() == recorded
    answers = requests.filter(usable=True, window="c8").select("arm", "prompt", "tokens_digest")
    assert answers["prompt"].unique().sort().to_list() == list(range(8))
    (texts,) = [table for table in study_tables([run]) if table.name == "texts"]
    for row in as_object(texts)["rows"]:
        of = requests.filter(usable=True, arm=row["arm"], window=row["window"])
        assert of["prompt"].n_unique() == row["prompts"]
        assert of.select("prompt", "tokens_digest").n_unique() == row["answers"]


def test_without_ids_or_prompts_of_their_own_there_is_neither(run, out, tmp_path):
    assert pl.read_parquet(out / "requests.parquet")["prompt"].null_count() > 0

    def blind(event):
        if not isinstance(event, WindowRequests):
            return event
        return replace(
            event, requests=tuple(replace(one, tokens_digest=None) for one in event.requests)
        )

    made = read_run(make_run(tmp_path / "run-b", small_plan(1), Shape(edit=blind)))
    write_tables([made], {}, tmp_path / "out", "parquet")
    told = pl.read_parquet(tmp_path / "out" / "requests.parquet")["tokens_digest"]
    assert told.null_count() == len(told) > 0


def test_void_and_unfinished_windows_are_rows(run, out):
    windows = pl.read_parquet(out / "windows.parquet")
    assert windows.height == sum(len(b.windows) for b in run.boots)
    assert windows.filter(~pl.col("usable"))["void_reasons"].to_list().count("") == 0
    unfinished = windows.filter(boot_outcome="interrupted")
    assert unfinished["wall_ns"].null_count() == unfinished.height == 1


def test_the_same_bytes_again(run, out, tmp_path):
    for form in ("parquet", "csv"):
        for path in write_tables([run], {"run-1": "sha256:ab"}, tmp_path, form):
            assert path.read_bytes() == (out / path.name).read_bytes(), path.name


def test_a_run_read_in_batches_gives_the_same_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_cache, "BATCH_CHUNKS", 200)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    write_tables([read_run(REAL)], {}, whole, "csv")
    write_tables([read_run_in_batches(REAL, tmp_path / "cache", large_bytes=0)], {}, parts, "csv")
    for path in whole.iterdir():
        assert path.read_bytes() == (parts / path.name).read_bytes(), path.name


def test_synthetic_is_said_in_every_file(tmp_path):
    made = read_run(make_run(tmp_path / "run-s", small_plan(blocks=1), Shape(synthetic=True)))
    for form in ("parquet", "csv"):
        for path in write_tables([made], {}, tmp_path / form, form):
            if path.suffix == ".parquet":
                assert pl.read_parquet(path)["synthetic"].all()
                assert json.loads(pq.read_schema(path).metadata[b"kit.about"])["synthetic"]
            elif path.suffix == ".csv":
                assert pl.read_csv(path)["synthetic"].all()
            else:
                assert "SYNTHETIC" in path.read_text()


def test_synthetic_and_real_runs_do_not_mix(run, tmp_path):
    made = read_run(make_run(tmp_path / "run-s", small_plan(blocks=1), Shape(synthetic=True)))
    with pytest.raises(FormatError, match="run-s"):
        write_tables([run, made], {}, tmp_path / "out", "parquet")


def test_types_are_those_of_the_page(out):
    for table in EXPORTS:
        assert pq.read_schema(out / f"{table.name}.parquet").equals(schema_of(table))
