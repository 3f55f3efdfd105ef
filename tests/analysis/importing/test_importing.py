"""Files of other tools as those wrote them: what is read, what is missing, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.definitions import DEFINITIONS, ChunkColumns, definition, summarise
from analysis.importing.aiperf import read_aiperf
from analysis.importing.foreign import chunks_frame, requests_frame
from analysis.importing.needs import NEEDS, columns, lacking
from analysis.importing.tables import contents_table, foreign_definitions_table
from analysis.importing.vllm_bench import read_vllm_bench
from analysis.table import as_object
from records.errors import ForeignFileError

FILES = Path(__file__).parents[2] / "fixtures" / "foreign"
BENCH = FILES / "vllm-bench.json"
KILLED = FILES / "vllm-bench-server-killed.json"
RAW = FILES / "aiperf" / "profile_export_raw.jsonl"
RECORDS = FILES / "aiperf" / "profile_export.jsonl"
WITH_IDS = FILES / "aiperf-token-ids"

CHUNKS = st.lists(st.tuples(st.integers(0, 50_000_000), st.integers(0, 5)), max_size=6)


def of(requests, tokens, scheduled=0) -> ChunkColumns:
    rows = []
    for chunks, counts in zip(requests, tokens, strict=True):
        times = [sum(gap for gap, _ in chunks[: i + 1]) for i in range(len(chunks))]
        rows.append((times, counts, 0, scheduled))
    return ChunkColumns.of_requests(rows)


def same(one, two) -> bool:
    def plain(sample):
        weights = None if sample.weights is None else sample.weights.tolist()
        return sample.values_ms.tolist(), weights, sample.excluded, sample.errors

    return plain(one) == plain(two)


@settings(max_examples=50, deadline=None)
@given(requests=st.lists(CHUNKS, max_size=5), draw=st.randoms(use_true_random=False))
def test_a_rule_does_not_depend_on_what_it_does_not_need(requests, draw):
    told = [[count for _, count in chunks] for chunks in requests]
    shuffled = [draw.sample(counts, len(counts)) for counts in told]
    at_the_end = [[0] * (len(c) - 1) + [sum(c)] if c else [] for c in told]
    none = [[0] * len(counts) for counts in told]
    for rule, needs in NEEDS.items():
        want = rule(of(requests, told))
        if "scheduled time" not in needs:
            assert same(rule(of(requests, told, scheduled=-7)), want)
        if "tokens of each chunk" not in needs:
            assert same(rule(of(requests, shuffled)), want)
            assert same(rule(of(requests, at_the_end)), want)
        if not needs:
            assert same(rule(of(requests, none)), want)


def test_every_rule_is_known():
    assert {one.compute for one in DEFINITIONS} == set(NEEDS)


def test_vllm_bench_comes_to_its_own_figures():
    told, run = json.loads(BENCH.read_text()), read_vllm_bench(BENCH)
    for id_, name in (
        ("vllm.bench.itl", "itl"),
        ("vllm.bench.tpot", "tpot"),
        ("ttft.sent", "ttft"),
    ):
        got = summarise(definition(id_), columns(run))
        # The tool reads its clock twice for the first chunk, under a microsecond apart.
        assert got.p50 == pytest.approx(told[f"median_{name}_ms"], abs=1e-3)
        assert got.p99 == pytest.approx(told[f"p99_{name}_ms"], abs=1e-3)
    assert sum(r.output_tokens for r in run.requests) == told["total_output_tokens"]


def test_aiperf_comes_to_its_own_figures():
    run = read_aiperf(RAW)
    told = [json.loads(line)["metrics"] for line in RECORDS.read_text().splitlines()]
    for id_, name in (("aiperf.itl", "inter_token_latency"), ("ttft.sent", "time_to_first_token")):
        got = definition(id_).compute(columns(run)).values_ms
        want = [one[name]["value"] for one in told]
        assert sorted(got) == pytest.approx(sorted(want), abs=1e-5)
    gaps = [gap for one in told for gap in one["inter_chunk_latency"]["value"]]
    got = definition("aiperf.icl").compute(columns(run)).values_ms
    assert sorted(got) == pytest.approx(sorted(gaps), abs=1e-5)


def test_both_exports_of_aiperf_say_the_same():
    raw, records = read_aiperf(RAW), read_aiperf(RECORDS)
    assert sorted(r.chunk_ns for r in raw.requests) == sorted(r.chunk_ns for r in records.requests)
    assert {r.output_tokens for r in records.requests} == {12}
    assert all(r.sent_ns is None for r in records.requests)  # a wall clock's time is none


def test_a_directory_gives_the_raw_records():
    assert read_aiperf(RAW.parent).file == RAW.name


def test_tokens_of_chunks_are_known_where_the_server_sent_ids():
    run = read_aiperf(WITH_IDS)
    assert [r.chunk_tokens for r in run.requests] == [(1, 3, 2, 1, 3, 2)] * 4
    assert not any(lacking(one, run) for one in DEFINITIONS if one.id != "ttft.scheduled")


@pytest.mark.parametrize("path", [BENCH, RAW], ids=["vllm", "aiperf"])
def test_what_is_unknown_is_missing_and_says_so(path):
    run = read_vllm_bench(path) if path is BENCH else read_aiperf(path)
    rows = {row["id"]: row for row in as_object(foreign_definitions_table(run))["rows"]}
    assert len(rows) == len(DEFINITIONS)
    assert rows["tpot.n-k1"]["missing"] == "tokens of each chunk"
    assert rows["ttft.scheduled"]["missing"] == "scheduled time"
    for row in rows.values():
        assert (row["missing"] == "-") == (row["p50"] is not None), row
    assert chunks_frame(run)["tokens"].isna().all()


def test_requests_that_failed_are_counted_and_not_measured():
    run = read_vllm_bench(KILLED)
    assert (len(run.requests), len(run.completed)) == (12, 4)
    rows = {row["what"]: row["number"] for row in as_object(contents_table(run))["rows"]}
    assert (rows["completed"], rows["failed"]) == (4, 8)
    frame = requests_frame(run)
    assert frame[frame.outcome == "failed"].output_tokens.isna().all()
    assert frame[frame.outcome == "failed"].error.notna().all()
    # One was cut off in mid-stream: its chunks are kept, as those of no result.
    assert frame[frame.outcome == "failed"].chunks.max() > 0
    gaps = summarise(definition("step-gap"), columns(run))
    assert gaps.count == sum(len(r.chunk_ns) - 1 for r in run.completed)


@pytest.mark.parametrize("name", [RAW.name, RECORDS.name])
def test_requests_that_failed_in_aiperf_are_counted_and_not_measured(name):
    run = read_aiperf(FILES / "aiperf-server-killed" / name)
    assert (len(run.requests), len(run.completed)) == (6, 2)
    assert all(r.error for r in run.requests if r not in run.completed)
    assert not lacking(definition("tpot.n-1"), run)  # what failed need not say its tokens
    assert definition("tpot.n-1").compute(columns(run)).values_ms.size == 2


def test_where_one_request_says_less_none_is_used(tmp_path):
    lines = RAW.read_text().splitlines()
    told = json.loads(lines[0])
    told["responses"] = [r for r in told["responses"] if '"usage"' not in r["packets"][0]["value"]]
    path = tmp_path / "raw.jsonl"
    path.write_text("\n".join([json.dumps(told), *lines[1:]]))
    run = read_aiperf(path)
    assert lacking(definition("tpot.n-1"), run) == ("output tokens",)
    assert lacking(definition("step-gap"), run) == ()


def test_warm_up_of_the_tool_is_left_out(tmp_path):
    lines = RAW.read_text().splitlines()
    warm = json.loads(lines[0])
    warm["metadata"]["benchmark_phase"] = "warmup"
    path = tmp_path / "raw.jsonl"
    path.write_text("\n".join([json.dumps(warm), *lines[1:]]))
    run = read_aiperf(path)
    assert (len(run.requests), run.left_out) == (3, 1)


def test_usage_in_every_chunk_tells_its_tokens(tmp_path):
    """AIPerf with --per-chunk-usage: vLLM's continuous_usage_stats counts upwards."""
    record = json.loads(RAW.read_text().splitlines()[0])
    total = 0
    for response, count in zip(record["responses"], (1, 3, 2, 1, 3, 2), strict=False):
        total += count
        event = json.loads(response["packets"][0]["value"])
        event["usage"] = {"prompt_tokens": 3, "completion_tokens": total}
        response["packets"][0]["value"] = json.dumps(event)
    path = tmp_path / "raw.jsonl"
    path.write_text(json.dumps(record))
    (request,) = read_aiperf(path).requests
    assert request.chunk_tokens == (1, 3, 2, 1, 3, 2)


@pytest.mark.parametrize("make", [foreign_definitions_table, contents_table])
def test_every_table_says_that_it_is_foreign(make):
    table = make(read_vllm_bench(BENCH))
    assert table.title.startswith("FOREIGN")
    assert table.notes[0].startswith("FOREIGN")


def without(**changes: object) -> str:
    value = json.loads(BENCH.read_text())
    return json.dumps({k: v for k, v in (value | changes).items() if v is not None})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (without(itls=None), "itls"),  # as without --save-detailed
        (without(ttfts=[0.1]), "length"),
        (without(itls=["x"] * 5), "another form"),
        (BENCH.read_text() + "\n" + BENCH.read_text(), "2 results"),
        ("[]", "object"),
        ("{", "JSON"),
        ("# A page\nin two lines\n", "not JSON"),
    ],
)
def test_what_is_no_detailed_result_is_refused(tmp_path, text, said):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(ForeignFileError, match=said):
        read_vllm_bench(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "metadata"),
        ("{", "JSON"),
        ('{"metadata":{"benchmark_phase":"profiling"}}', "neither raw nor metric"),
        ('{"metadata":{"benchmark_phase":"profiling"},"responses":[{}]}', "another form"),
    ],
)
def test_what_is_no_export_of_aiperf_is_refused(tmp_path, text, said):
    path = tmp_path / "raw.jsonl"
    path.write_text(text)
    with pytest.raises(ForeignFileError, match=said):
        read_aiperf(path)


def test_a_directory_without_exports_is_refused(tmp_path):
    with pytest.raises(ForeignFileError, match="neither"):
        read_aiperf(tmp_path)
