"""Goodput on a real capture: the ranking turns on which quantity the objective names."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.definitions import ChunkColumns
from analysis.goodput import (
    QUANTITIES,
    compliance,
    goodput,
    goodput_of,
    goodput_row,
    segment_percentiles,
)
from records.errors import FormatError

CAPTURE = (
    Path(__file__).parents[1] / "fixtures" / "vllm-0.29.0" / "cuda" / "chunks-bf16-fa2-c64.jsonl"
)
MS = 1_000_000
SECOND = 1_000_000_000
THRESHOLDS = [20.0, 25.0, 30.0, 50.0]


@pytest.fixture(scope="module")
def capture() -> ChunkColumns:
    rows = [json.loads(line) for line in CAPTURE.read_text().splitlines()]
    return ChunkColumns.of_requests(
        (
            [row["t0"] + at for at, _ in row["chunks"]],
            [count for _, count in row["chunks"]],
            row["t0"],
            row["t0"],
        )
        for row in rows
    )


def test_at_25_ms_gaps_fail_every_request_that_tpot_passes(capture: ChunkColumns) -> None:
    gap = goodput(capture, 10 * SECOND, "p95-step-gap", 25.0)
    tpot = goodput(capture, 10 * SECOND, "tpot.n-1", 25.0)
    assert capture.requests == 128
    assert (gap.met, gap.undefined, gap.per_second) == (0, 0, 0.0)
    assert (tpot.met, tpot.undefined, tpot.per_second) == (124, 0, 12.4)  # 96.9 %
    assert tpot.compliant_fraction == 124 / 128


@given(st.lists(st.lists(st.integers(0, 2**40), max_size=12), max_size=6), st.booleans())
def test_percentiles_of_requests_are_numpys(gaps: list[list[int]], wide: bool) -> None:
    if wide:  # leaves no room for the one-key sort
        gaps = [[*gaps_of, 2**61] for gaps_of in gaps]
    columns = ChunkColumns.of_requests(
        (np.cumsum([0, *row]).tolist(), [1] * (len(row) + 1), 0, 0) for row in gaps
    )
    found = segment_percentiles(columns, 95.0)
    expected = [np.percentile(row, 95) / MS if row else np.nan for row in gaps]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_undefined_does_not_meet_and_is_counted() -> None:
    columns = ChunkColumns.of_requests(
        [([MS], [1], 0, 0), ([], [], 0, 0), ([MS, 3 * MS], [2, 2], 0, 0), ([MS], [3], 0, 0)]
    )
    found = {q: goodput(columns, SECOND, q, 1.0) for q in QUANTITIES}
    assert {q: (g.met, g.undefined) for q, g in found.items()} == {
        "p95-step-gap": (0, 3),
        "tpot.n-1": (2, 2),
        "tpot.n-k1": (1, 3),
        "ntpot": (3, 1),
    }


def test_a_row_of_thresholds_never_decreases(capture: ChunkColumns) -> None:
    for quantity in QUANTITIES:
        row = goodput_row(capture, SECOND, quantity, [20.0, 30.0, 50.0, 75.0])
        assert [g.met for g in row] == sorted(g.met for g in row)


@given(st.lists(st.floats(0, 1), min_size=200, max_size=200), st.integers(0, 3 * MS))
def test_whatever_stamps_are_late_by_the_count_lies_between(
    capture: ChunkColumns, late: list[float], error_ns: int
) -> None:
    """A stamp is late by 0 to E: take any lateness away, and as many as `surely` and no more than
    `possibly` meet the objective. `late`: shares of E, over and over.
    """
    lateness = (np.resize(late, capture.chunk_ns.size) * error_ns).astype(np.int64)
    truth = replace(capture, chunk_ns=_rising(capture, capture.chunk_ns - lateness))
    for quantity in QUANTITIES:
        found = compliance(capture, quantity, THRESHOLDS, error_ns)
        really = compliance(truth, quantity, THRESHOLDS).met
        assert (found.surely <= really).all(), quantity
        assert (really <= found.possibly).all(), quantity


def _rising(columns: ChunkColumns, chunk_ns: np.ndarray) -> np.ndarray:
    """A later chunk is never received before an earlier one of its request."""
    parts = np.split(chunk_ns, columns.request_offsets[1:-1])
    return np.concatenate([np.maximum.accumulate(part) for part in parts])


def test_an_unknown_error_leaves_every_defined_request_in_doubt(capture: ChunkColumns) -> None:
    found = compliance(capture, "tpot.n-1", [25.0], math.inf)
    assert (found.surely[0], found.met[0], found.possibly[0]) == (0, 124, 128)


def test_parts_of_a_window_add_up(capture: ChunkColumns) -> None:
    keep = np.arange(capture.requests) % 3 == 0
    parts = [_only(capture, mask) for mask in (keep, ~keep)]
    for quantity in QUANTITIES:
        one, two = (compliance(part, quantity, THRESHOLDS, MS) for part in parts)
        both, whole = one.plus(two), compliance(capture, quantity, THRESHOLDS, MS)
        assert goodput_of(both, SECOND, quantity, THRESHOLDS) == goodput_of(
            whole, SECOND, quantity, THRESHOLDS
        )


def _only(columns: ChunkColumns, keep: np.ndarray) -> ChunkColumns:
    counts = columns.chunk_counts()
    inside = np.repeat(keep, counts)
    return ChunkColumns(
        np.concatenate(([0], np.cumsum(counts[keep]))),
        columns.chunk_ns[inside],
        columns.chunk_tokens[inside],
        columns.sent_ns[keep],
        columns.scheduled_ns[keep],
    )


def test_no_requests_and_no_duration() -> None:
    empty = ChunkColumns.of_requests([])
    assert goodput(empty, SECOND, "ntpot", 1.0).compliant_fraction is None
    with pytest.raises(FormatError):
        goodput(empty, 0, "ntpot", 1.0)
