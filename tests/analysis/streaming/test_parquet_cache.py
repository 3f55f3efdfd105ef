"""Runs read through the cache: the same tables, byte for byte, and never from a bad entry."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sealed_run import DRAFTED, Shape, make_run, small_plan

from analysis.publish import table_files
from analysis.reading import read_run
from analysis.streaming import parquet_cache
from analysis.streaming.large_run import read_run_in_batches
from analysis.tables import study_tables
from records.errors import ChainError
from records.run_directory import RunDirectory
from records.schema import WindowRequests

REAL = Path(__file__).parents[3] / "records" / "data" / "20261130T115921Z-smoke-cpu-5d0eba"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several row groups a window: a batch ends with the request that fills it."""
    monkeypatch.setattr(parquet_cache, "BATCH_CHUNKS", 20)


def made_tables(run) -> dict[str, bytes]:
    return table_files(study_tables([run]))


def uneven(seed: int):
    """Requests that failed, that carry odd token counts, and merged chunks."""
    draw = random.Random(seed)

    def edit(event):
        if not isinstance(event, WindowRequests):
            return event
        changed = []
        for one in event.requests:
            tokens = tuple(draw.choice([0, 1, 1, 3]) for _ in one.chunk_tokens)
            merged = tuple(i for i in range(len(tokens)) if draw.random() < 0.2)
            made = replace(one, chunk_tokens=tokens, merged=merged)
            fate = draw.random()
            if fate < 0.2:
                made = replace(made, outcome="failed", error="reset", step_accepted=())
            elif fate < 0.3:
                made = replace(made, chunk_ns=(), chunk_tokens=(), merged=(), step_accepted=())
            elif fate < 0.4:
                made = replace(made, step_accepted=tuple(draw.randrange(DRAFTED) for _ in tokens))
            elif fate < 0.5:
                made = replace(made, tokens_digest=None)
            changed.append(made)
        return replace(event, requests=tuple(changed))

    return edit


@pytest.mark.parametrize("seed", range(4))
def test_the_same_tables_by_any_way(tmp_path, seed):
    shape = Shape(
        edit=uneven(seed),
        synthetic=seed == 3,
        interrupt_first=seed % 2 == 1,
        fail_last=seed % 3 == 1,
        void_first_window=seed % 3 == 2,
    )
    directory = make_run(tmp_path / "run-1", small_plan(requests=20), shape)
    want = made_tables(read_run(directory))
    cache = tmp_path / "cache"
    assert made_tables(read_run_in_batches(directory, cache, large_bytes=0)) == want
    (entry,) = cache.iterdir()
    made = (entry / "requests.parquet").stat().st_mtime_ns
    assert made_tables(read_run_in_batches(directory, cache, large_bytes=0)) == want
    assert (entry / "requests.parquet").stat().st_mtime_ns == made


def test_the_committed_tables_come_out_of_the_cache(tmp_path):
    run = read_run_in_batches(RunDirectory(REAL), tmp_path, large_bytes=0)
    committed = REAL.parents[2] / "paper" / "tables" / REAL.name
    assert made_tables(run) == {path.name: path.read_bytes() for path in committed.iterdir()}


def test_a_window_is_read_in_several_batches_and_whole(tmp_path):
    directory = make_run(tmp_path / "run-1", small_plan(requests=20), Shape(edit=uneven(1)))
    run = read_run_in_batches(directory, tmp_path / "cache", large_bytes=0)
    there = [w for boot in read_run(directory).boots for w in boot.windows]
    here = [w for boot in run.boots for w in boot.windows]
    assert max(len(list(w.source.batches())) for w in here) > 1
    for one, two in zip(here, there, strict=True):
        got, want = one.requests, two.requests
        assert {n: v.tolist() for n, v in got.scalars.items()} == {
            n: v.tolist() for n, v in want.scalars.items()
        }
        assert (got.finish_reason, got.error) == (want.finish_reason, want.error)
        assert got.tokens_digest == want.tokens_digest
        for name in ("outcome", "ramp", "merged", "steps", "step_offsets", "merged_at"):
            assert np.array_equal(getattr(got, name), getattr(want, name)), name
        for name in ("request_offsets", "chunk_ns", "chunk_tokens", "sent_ns", "scheduled_ns"):
            assert np.array_equal(getattr(got.chunks, name), getattr(want.chunks, name)), name


@pytest.mark.parametrize("file", ["requests.parquet", "index.json"])
def test_an_entry_that_is_damaged_is_made_again(tmp_path, file):
    directory, cache = make_run(tmp_path / "run-1", small_plan(), Shape()), tmp_path / "cache"
    want = made_tables(read_run_in_batches(directory, cache, large_bytes=0))
    (entry,) = cache.iterdir()
    damaged = entry / file
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    assert made_tables(read_run_in_batches(directory, cache, large_bytes=0)) == want
    assert [path.name for path in cache.iterdir()] == [entry.name]


def test_an_entry_never_stands_in_for_a_changed_journal(tmp_path):
    directory, cache = make_run(tmp_path / "run-1", small_plan(), Shape()), tmp_path / "cache"
    read_run_in_batches(directory, cache, large_bytes=0)
    data = directory.events.read_bytes()
    directory.events.write_bytes(data.replace(b'"completed"', b'"cancelled"', 1))
    with pytest.raises(ChainError):
        read_run_in_batches(directory, cache, large_bytes=0)


def test_a_journal_that_does_not_hold_leaves_nothing_behind(tmp_path):
    directory, cache = make_run(tmp_path / "run-1", small_plan(), Shape()), tmp_path / "cache"
    directory.events.write_bytes(directory.events.read_bytes()[:-1] + b" ")
    with pytest.raises(ChainError):
        read_run_in_batches(directory, cache, large_bytes=0)
    assert list(cache.iterdir()) == []


def test_small_and_open_runs_need_no_cache(tmp_path):
    cache = tmp_path / "cache"
    read_run_in_batches(make_run(tmp_path / "run-1", small_plan(), Shape()), cache)
    growing = make_run(tmp_path / "run-2", small_plan(), Shape(seal=False))
    read_run_in_batches(growing, cache, large_bytes=0)
    assert not cache.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda index: {**index, "windows": index["windows"][::-1]},
        lambda index: {**index, "windows": index["windows"][:2]},
        lambda index: {**index, "windows": [[]] * len(index["windows"])},
        lambda index: {**index, "windows": [[99]] * len(index["windows"])},
        lambda index: {**index, "windows": None},
        lambda index: [index],
        lambda index: dict.fromkeys(index),
    ],
)
def test_an_index_that_was_changed_is_made_again(tmp_path, damage):
    directory = make_run(tmp_path / "run-1", small_plan(), Shape())
    want = made_tables(read_run(directory))
    cache = tmp_path / "cache"
    read_run_in_batches(directory, cache, large_bytes=0)
    (entry,) = cache.iterdir()
    index = entry / "index.json"
    before = index.read_text()
    index.write_text(json.dumps(damage(json.loads(before))))
    assert made_tables(read_run_in_batches(directory, cache, large_bytes=0)) == want
    assert index.read_text() == before
