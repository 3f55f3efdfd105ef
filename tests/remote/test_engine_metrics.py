"""Counters from the captured /metrics, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import canonical
from records.errors import FormatError
from remote.engine import exposition
from remote.engine.metrics import Counters, PrefixCache, SpecDecode, delta, parse

CAPTURES = Path(__file__).parents[1] / "fixtures" / "vllm-0.29.0"
PROM = (CAPTURES / "cuda/metrics-bf16-fa2.prom").read_text()


def test_the_gpu_capture() -> None:
    seen = parse(PROM)
    assert seen.spec_decode == SpecDecode(10_644, 42_576, 6_740, (3_860, 1_566, 850, 464))
    assert sum(seen.spec_decode.accepted_per_position) == seen.spec_decode.accepted_tokens
    assert (seen.generation_tokens, seen.prompt_tokens) == (17_408, 1_990)
    assert dict(seen.request_success)["length"] == 148
    assert seen.prefix_cache == PrefixCache(1_990, 0)
    assert (seen.requests_running, seen.requests_waiting, seen.preemptions) == (0, 0, 0)
    assert canonical.encode(dataclasses.asdict(seen))


def test_the_cpu_capture_from_the_socket() -> None:
    response = (CAPTURES / "cpu/http/metrics.http").read_bytes()
    seen = parse(response.partition(b"\r\n\r\n")[2])
    assert seen.spec_decode == SpecDecode(177, 708, 69, (45, 21, 3, 0))
    assert seen.requests_running == 1


def without(text: str, part: str) -> str:
    return "".join(line for line in text.splitlines(True) if part not in line)


def test_an_absent_family_is_none_and_not_zero() -> None:
    bare = without(without(PROM, "vllm:spec_decode"), "vllm:prefix_cache")
    seen = parse(without(bare, "vllm:num_preemptions"))
    assert seen.spec_decode is None
    assert seen.prefix_cache is None
    assert seen.preemptions is None
    assert delta(seen, seen).spec_decode is None


@pytest.mark.parametrize(
    "part",
    ["spec_decode_num_drafts_total", "num_accepted_tokens_per_pos_total", 'position="1"',
     "vllm:prefix_cache_hits_total", "vllm:generation_tokens_total"],
)  # fmt: skip
def test_half_a_family_is_refused(part: str) -> None:
    with pytest.raises(FormatError):
        parse(without(PROM, part))


def test_engines_are_summed() -> None:
    second = [
        line.replace('engine="0"', 'engine="1"')
        for line in PROM.splitlines(True)
        if 'engine="0"' in line
    ]
    seen = parse(PROM + "".join(second))
    assert seen.generation_tokens == 2 * 17_408
    assert seen.spec_decode is not None
    assert seen.spec_decode.accepted_per_position == (7_720, 3_132, 1_700, 928)


def test_delta_counts_and_keeps_gauges() -> None:
    before = parse(PROM)
    grown = PROM.replace('generation_tokens_total{engine="0",model_name="m"} 17408.0',
                         'generation_tokens_total{engine="0",model_name="m"} 17500.0')  # fmt: skip
    grown = grown.replace('requests_running{engine="0",model_name="m"} 0.0',
                          'requests_running{engine="0",model_name="m"} 3.0')  # fmt: skip
    difference = delta(parse(grown), before)
    assert difference.generation_tokens == 92
    assert difference.requests_running == 3
    assert difference.spec_decode == SpecDecode(0, 0, 0, (0, 0, 0, 0))
    with pytest.raises(FormatError, match="fell from 17500 to 17408"):
        delta(before, parse(grown))


def test_a_family_that_comes_or_goes_is_refused() -> None:
    full, bare = parse(PROM), parse(without(PROM, "vllm:spec_decode"))
    for after, before in ((full, bare), (bare, full)):
        with pytest.raises(FormatError, match="in one reading and not in the other"):
            delta(after, before)


def test_a_finish_reason_first_seen_counts_from_zero() -> None:
    before = parse(without(PROM, 'finished_reason="length"'))
    assert dict(delta(parse(PROM), before).request_success)["length"] == 148


@pytest.mark.parametrize("value", ["1.5", "NaN", "+Inf", "-Inf"])
def test_a_count_that_is_no_integer_is_refused(value: str) -> None:
    with pytest.raises(FormatError, match="not an integer"):
        parse(PROM.replace("} 17408.0", f"}} {value}"))


def test_large_counts_are_exact() -> None:
    (sample,) = exposition.parse("a_total 9.007199254740993e+15\n")
    assert sample.integer() == 9_007_199_254_740_993


@pytest.mark.parametrize(
    "line",
    ["name", "name{ 1", 'name{a="b} 1', 'name{a="b" c="d"} 1', "name{a=b} 1", "1name 1", "name one",
     'name{a="1",a="2"} 1', "name 1 2 3", 'name{a="\\x"} 1', "# TYPE name strange",
     "# TYPE 1 gauge", "name 1_0", "name 0x1"],
)  # fmt: skip
def test_a_bad_line_is_named(line: str) -> None:
    with pytest.raises(FormatError, match="line 2"):
        exposition.parse(f"ok 1\n{line}\nok2 1\n")


def test_a_series_given_twice_is_refused() -> None:
    with pytest.raises(FormatError, match="line 2: a with the same labels"):
        exposition.parse('a{x="1",y="2"} 1\na{y="2",x="1"} 1\n')


def test_bytes_that_are_not_utf8_name_their_line() -> None:
    with pytest.raises(FormatError, match="line 2: not UTF-8"):
        exposition.parse(b"ok 1\nb\xff 1\n")


@given(st.dictionaries(st.sampled_from("abcd"), st.text(max_size=8)), st.integers(0, 2**62))
def test_labels_and_integers_survive(labels: dict[str, str], value: int) -> None:
    def escape(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    inside = ",".join(f'{k}="{escape(v)}"' for k, v in labels.items())
    (sample,) = exposition.parse(f"name{{{inside}}} {value}.0\n")
    assert dict(sample.labels) == labels
    assert sample.integer() == value


def test_counters_have_no_default() -> None:
    with pytest.raises(TypeError):
        Counters()  # type: ignore[call-arg]
