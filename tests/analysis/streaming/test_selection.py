"""Streamed percentiles against those of all values at once, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.definitions import DEFINITIONS
from analysis.definitions.columns import ChunkColumns
from analysis.definitions.definition import summarise
from analysis.statistics.percentiles import percentiles
from analysis.streaming import selection as selecting
from analysis.streaming.selection import Linear, Selection
from analysis.streaming.summariser import Summariser

PERCENTS = (0, 1, 50, 95, 99, 100)
# Nanoseconds from 0 to hours, many of them equal, as gaps in ms.
GAPS = st.lists(
    st.one_of(
        st.integers(0, 10**13),
        st.sampled_from([0, 1, 20_000_000]),
        st.integers(20 * 10**6, 21 * 10**6),
    ),
    min_size=1,
    max_size=60,
)


def streamed(batches, *, weighted: bool):
    selection = Selection()
    for batch in batches:
        selection.see(batch)
    linear = Linear(selection, PERCENTS, weighted)
    linear.aim()
    while not selection.done:
        for batch in batches:
            selection.look(batch)
        selection.end_pass()
    return linear.points()


@pytest.mark.parametrize("held", [1 << 20, 1])
@settings(max_examples=50, deadline=None)
@given(gaps=GAPS, cut=st.integers(1, 7))
def test_equal_to_numpy(gaps, cut, held):
    values = np.array(gaps, dtype=np.int64) / 1e6
    batches = [(values[i : i + cut], None) for i in range(0, len(gaps), cut)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selecting, "_HELD", held)
        assert streamed(batches, weighted=False) == percentiles(values, None, PERCENTS)


@pytest.mark.parametrize("held", [1 << 20, 1])
@settings(max_examples=50, deadline=None)
@given(gaps=GAPS, cut=st.integers(1, 7), draw=st.randoms(use_true_random=False))
def test_equal_with_weights(gaps, cut, draw, held):
    weights = np.array([draw.choice([1, 1, 2, 5, 1000]) for _ in gaps], dtype=np.int64)
    values = np.array(gaps, dtype=np.int64) / weights / 1e6
    batches = [(values[i : i + cut], weights[i : i + cut]) for i in range(0, len(gaps), cut)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selecting, "_HELD", held)
        assert streamed(batches, weighted=True) == percentiles(values, weights, PERCENTS)


def test_a_million_equal_values_are_not_kept():
    values = np.full(1 << 18, 20.0)
    batches = [(values, None)] * 8
    assert streamed(batches, weighted=False) == (20.0,) * len(PERCENTS)


REQUESTS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 50_000_000), st.integers(0, 5)), max_size=6),
        st.integers(0, 1000),
    ),
    max_size=12,
)


def columns(requests) -> ChunkColumns:
    rows = []
    for chunks, sent in requests:
        times = np.cumsum([gap for gap, _ in chunks]).tolist()
        rows.append(([sent + t for t in times], [n for _, n in chunks], sent, sent - 1))
    return ChunkColumns.of_requests(rows)


@settings(max_examples=50, deadline=None)
@given(requests=REQUESTS, cut=st.integers(1, 5))
def test_every_definition_in_batches_as_at_once(requests, cut):
    whole = columns(requests)
    parts = [columns(requests[i : i + cut]) for i in range(0, len(requests), cut)]
    summariser = Summariser(DEFINITIONS)
    for part in parts:
        summariser.see(part)
    assert list(summariser.summaries(lambda: parts)) == [
        summarise(one, whole) for one in DEFINITIONS
    ]


def test_every_pooled_definition_can_be_streamed():
    """Else its values would be kept, one a gap."""
    assert all(one.percentile_method == "linear" for one in DEFINITIONS if one.per != "request")
