"""Every definition on the worked example, and against a plain per-request reference."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.definitions import DEFINITIONS, ChunkColumns, definition, of_request, summarise
from analysis.definitions.columns import Request
from analysis.definitions.rules import Sample
from records.errors import FormatError

MS = 1_000_000
EXAMPLE: Request = ([100 * MS, 140 * MS, 180 * MS], [1, 3, 1], 0, -30 * MS)

WORKED = {
    "vllm.bench.itl": [40, 40],
    "vllm.bench.tpot": [20],
    "vllm.metrics.itl": [40, 40],
    "inferencex.itl": [40, 40],
    "inferencex.tpot": [20],
    "sglang.itl": [40 / 3, 40 / 3, 40 / 3, 40],
    "guidellm.itl": [20] * 4,
    "guidellm.tpot": [36] * 5,
    "genai-perf.itl": [20],
    "aiperf.itl": [20],
    "aiperf.itl.per-chunk-usage": [20],
    "aiperf.icl": [40, 40],
    "inference-perf.itl": [0, 0, 40, 40],
    "inference-perf.tpot": [20],
    "inference-perf.ntpot": [36],
    "mlperf.tpot": [20],
    "llmperf.itl": [60],
    "llmperf.itl.final": [36],
    "llmperf.itl.pr99": [20],
    "step-gap": [40, 40],
    "tpot.n-1": [20],
    "tpot.n-k1": [20],
    "ntpot": [36],
    "ttft.sent": [100],
    "ttft.scheduled": [130],
}


def written_out(sample: Sample) -> list[float]:
    weights = 1 if sample.weights is None else sample.weights
    return sorted(np.repeat(sample.values_ms, weights).tolist())


def test_every_definition_has_a_worked_example_and_a_source() -> None:
    assert {d.id for d in DEFINITIONS} == set(WORKED)
    assert len({d.id for d in DEFINITIONS}) == len(DEFINITIONS)
    assert all(d.source and d.rule and d.edge for d in DEFINITIONS)


@pytest.mark.parametrize("id_", WORKED)
def test_worked_example(id_: str) -> None:
    sample = of_request(definition(id_), *EXAMPLE)
    assert written_out(sample) == WORKED[id_]
    assert (sample.excluded, sample.errors) == (0, 0)


def reference(id_: str, request: Request) -> list[float] | None:
    """The rule of one definition over one request, written plainly; None: excluded."""
    times, tokens, sent, scheduled = request
    n, chunks = sum(tokens), len(times)
    pairs = list(itertools.pairwise(times))
    decode = times[-1] - times[0] if chunks else 0
    if id_ in {"vllm.bench.itl", "vllm.metrics.itl", "inferencex.itl", "aiperf.icl", "step-gap"}:
        return [(b - a) / MS for a, b in pairs] or None
    if id_ == "sglang.itl":
        values, before = [], None
        for time, count in zip(times, tokens, strict=True):
            if before is not None:
                if count == 0:
                    continue
                values += [(time - before) / count / MS] * count
            before = time
        return values or None
    if id_ == "inference-perf.itl":
        each = [time for time, count in zip(times, tokens, strict=True) for _ in range(count)]
        return [(b - a) / MS for a, b in itertools.pairwise(each)] or None
    if id_ == "inference-perf.tpot":
        each = [time for time, count in zip(times, tokens, strict=True) for _ in range(count)]
        return [(each[-1] - each[0]) / (n - 1) / MS] if n > 1 else None
    if id_ == "guidellm.tpot":
        return [(times[-1] - sent) / n / MS] * n if n else None
    if id_ in {"llmperf.itl", "llmperf.itl.final", "inference-perf.ntpot"}:
        per = chunks if id_ == "llmperf.itl" else n
        return [(times[-1] - sent) / per / MS] if n else [0.0]
    if id_ == "ntpot":
        return [(times[-1] - sent) / n / MS] if n else None
    if id_.startswith("ttft"):
        start = sent if id_ == "ttft.sent" else scheduled
        return [(times[0] - start) / MS] if chunks else None
    if id_ == "tpot.n-k1":
        return [decode / (n - tokens[0]) / MS] if chunks and n > tokens[0] else None
    if n <= 1 or (id_ == "genai-perf.itl" and chunks == 1):
        return None
    divisor = n - 1
    if id_ == "aiperf.itl.per-chunk-usage" and 0 < tokens[0] < n:
        divisor = n - tokens[0]
    value = decode / divisor
    if id_ == "genai-perf.itl":
        value = round(value)
    return [value / MS] * (n - 1 if id_ == "guidellm.itl" else 1)


@st.composite
def one_request(draw: st.DrawFn) -> Request:
    sent = draw(st.integers(0, 10**15))
    gaps = draw(st.lists(st.integers(0, 10**9), max_size=8))
    times = [sent + 1 + total for total in itertools.accumulate(gaps)]
    tokens = draw(st.lists(st.integers(0, 5), min_size=len(gaps), max_size=len(gaps)))
    return times, tokens, sent, sent - draw(st.integers(0, 10**9))


@given(st.lists(one_request(), max_size=6))
def test_columns_equal_the_per_request_reference(requests: list[Request]) -> None:
    columns = ChunkColumns.of_requests(requests)
    for entry in DEFINITIONS:
        expected = [reference(entry.id, request) for request in requests]
        sample = entry.compute(columns)
        values = sorted(value for part in expected if part is not None for value in part)
        assert written_out(sample) == values, entry.id
        assert sample.excluded == expected.count(None), entry.id
        assert sample.errors == (sample.excluded if entry.id == "mlperf.tpot" else 0)


def test_one_token_and_nothing() -> None:
    columns = ChunkColumns.of_requests([([5 * MS], [1], 0, 0), ([], [], 0, 0)])
    assert summarise(definition("mlperf.tpot"), columns).errors == 2
    assert summarise(definition("mlperf.tpot"), columns).p50 is None
    assert summarise(definition("vllm.bench.itl"), columns).p99 == 0.0
    assert summarise(definition("aiperf.icl"), columns).p99 is None
    assert summarise(definition("tpot.n-k1"), columns).excluded == 2
    assert summarise(definition("llmperf.itl"), columns).count == 2


def test_guidellm_weighs_requests_by_tokens() -> None:
    long = ([0, 99 * MS], [1, 99], 0, 0)
    short = ([0, 50 * MS], [1, 1], 0, 0)
    columns = ChunkColumns.of_requests([long, short, short])
    assert summarise(definition("guidellm.itl"), columns).p50 == 1.0
    assert summarise(definition("aiperf.itl"), columns).p50 == 50.0
    gaps = summarise(definition("step-gap"), columns)
    assert gaps.p5 is not None
    assert gaps.p50 is not None
    assert gaps.p5 <= gaps.p50


def test_dividing_by_n_minus_1_is_biased_when_the_first_chunk_is_bundled() -> None:
    columns = ChunkColumns.of_requests([([20 * MS * i for i in range(50)], [4] * 50, 0, 0)])
    assert summarise(definition("tpot.n-1"), columns).p50 == pytest.approx(980 / 199)
    assert summarise(definition("tpot.n-k1"), columns).p50 == 5.0


@pytest.mark.parametrize(
    "request_",
    [([2, 1], [1, 1], 0, 0), ([1, 2], [1, -1], 0, 0), ([1, 2], [1], 0, 0)],
)
def test_columns_that_do_not_fit_are_refused(request_: Request) -> None:
    with pytest.raises(FormatError):
        ChunkColumns.of_requests([request_])


def test_offsets_that_do_not_fit_are_refused() -> None:
    one = np.zeros(1, dtype=np.int64)
    with pytest.raises(FormatError):
        ChunkColumns(np.array([0, 2]), one, one, one, one)
    with pytest.raises(FormatError):
        ChunkColumns(np.array([0, 1]), np.array([1.5]), one, one, one)  # type: ignore[arg-type]
    with pytest.raises(FormatError):
        definition("itl")
