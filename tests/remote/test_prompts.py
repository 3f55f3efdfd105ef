"""Bodies of requests: what the plan says, digit for digit, and nothing two requests share."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from records.digest import Digest
from records.errors import BindingError, PlanError
from records.load import Load, Prompts, Sampling, Window
from remote.prompts import request_source
from remote.prompts.builtin import builtin_prompts

SAMPLING = Sampling(
    max_tokens=64,
    min_tokens=2,
    ignore_eos=True,
    temperature=Decimal("0.70"),
    top_p=Decimal("1"),
    top_k=-1,
    min_p=Decimal("1E-3"),
    seed=5,
    presence_penalty=Decimal("-0.5"),
    frequency_penalty=Decimal(0),
    repetition_penalty=Decimal("1.0"),
)


def window(prompts: Prompts, endpoint: str = "completions") -> Window:
    return Window("w", endpoint, Load("closed", 1, requests=1), prompts, SAMPLING)


def in_file(directory: Path, source: str, content: str, count: int) -> Prompts:
    """Prompts out of a file `p` of this content, which lies in `directory` under its digest."""
    digest = Digest.of(content.encode())
    (directory / digest.hex).write_text(content)
    return Prompts(source, count, 0, unique=False, path="a/p", digest=digest)


def bodies(prompts: Prompts, count: int, endpoint: str = "completions") -> list[dict[str, object]]:
    source = request_source(window(prompts, endpoint), "m")
    return [json.loads(source.body(i)) for i in range(count)]


def test_every_sampling_parameter_is_explicit_and_exact() -> None:
    source = request_source(window(Prompts("builtin", 1, 0, unique=False)), "a/model")
    raw = source.body(0)
    assert b'"temperature":0.70,' in raw
    assert b'"min_p":0.001,' in raw
    value = json.loads(raw)
    prompt = value.pop("prompt")
    assert prompt in builtin_prompts()
    assert value == {
        "model": "a/model",
        "max_tokens": 64,
        "min_tokens": 2,
        "ignore_eos": True,
        "temperature": 0.7,
        "top_p": 1,
        "top_k": -1,
        "min_p": 0.001,
        "seed": 5,
        "presence_penalty": -0.5,
        "frequency_penalty": 0,
        "repetition_penalty": 1.0,
        "n": 1,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_token_ids": True,
    }


def test_chat_carries_messages() -> None:
    (value,) = bodies(Prompts("builtin", 1, 0, unique=False), 1, "chat")
    (message,) = value["messages"]  # type: ignore[misc]
    assert message["role"] == "user"  # type: ignore[index]
    assert "prompt" not in value


def test_bodies_are_a_function_of_seed_and_index() -> None:
    prompts = Prompts("builtin", 5, 3, unique=True)
    assert bodies(prompts, 12) == bodies(prompts, 12)
    assert bodies(prompts, 12) != bodies(Prompts("builtin", 5, 4, unique=True), 12)


@pytest.mark.parametrize("unique", [True, False])
def test_prompts_are_cycled_and_unique_on_demand(unique: bool) -> None:
    texts = [b["prompt"] for b in bodies(Prompts("builtin", 4, 0, unique=unique), 8)]
    assert len(set(texts)) == (8 if unique else 4)  # type: ignore[arg-type]
    if unique:
        assert str(texts[7]).startswith("Request 7. ")


def test_random_ids_are_in_range_and_differ_at_the_front() -> None:
    prompts = Prompts("random", 2, 1, True, input_tokens=40, token_low=100, token_high=1100)
    ids = [tuple(b["prompt"]) for b in bodies(prompts, 3000)]  # type: ignore[arg-type]
    assert all(len(p) == 40 and min(p) >= 100 and max(p) < 1100 for p in ids)
    assert len({p[:4] for p in ids}) == 3000


def test_random_ids_without_unique_repeat() -> None:
    prompts = Prompts("random", 2, 1, False, input_tokens=3, token_low=0, token_high=9)
    ids = [b["prompt"] for b in bodies(prompts, 4)]
    assert ids[0] == ids[2] != ids[1]


@pytest.mark.parametrize(
    ("source", "content", "expected"),
    [
        ("jsonl", '{"prompt":"a","note":1}\n\n{"prompt":"b"}\n', {"a", "b"}),
        ("spec-bench", '{"question_id":81,"category":"w","turns":["a","x"]}\n{"turns":["b"]}',
         {"a", "b"}),
        ("sharegpt", json.dumps([
            {"id": "1", "conversations": [{"from": "human", "value": "a"}]},
            {"id": "2", "conversations": [{"from": "gpt", "value": "no"}]},
            {"id": "3", "conversations": []},
            {"id": "4", "conversations": [{"from": "user", "value": "b"}]},
        ]), {"a", "b"}),
    ],
)  # fmt: skip
def test_files(tmp_path: Path, source: str, content: str, expected: set[str]) -> None:
    asked = in_file(tmp_path, source, content, 2)
    made = request_source(window(asked), "m", tmp_path)
    assert {json.loads(made.body(i))["prompt"] for i in range(2)} == expected


def test_ids_of_a_file(tmp_path: Path) -> None:
    prompts = in_file(tmp_path, "jsonl", '{"prompt":[1,2,3]}', 1)
    assert json.loads(request_source(window(prompts), "m", tmp_path).body(0))["prompt"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("source", "content", "words"),
    [
        ("jsonl", '{"prompt":"a"}\n{"prompt":""}', "p:2: not a jsonl prompt"),
        ("jsonl", "{", "p:1: not JSON"),
        ("jsonl", '{"prompt":[1,-2]}', "p:1"),
        ("spec-bench", '{"turns":[]}', "p:1"),
        ("sharegpt", "{}", "a list is expected"),
        ("sharegpt", "[1]", "entry 0"),
        ("jsonl", '{"prompt":"a"}', "2 prompts asked for, jsonl has 1"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, source: str, content: str, words: str) -> None:
    prompts = in_file(tmp_path, source, content, 2)
    with pytest.raises(PlanError, match=words):
        request_source(window(prompts), "m", tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    asked = Prompts("jsonl", 1, 0, False, path="p", digest=Digest.of(b""))
    with pytest.raises(PlanError, match="No such file") as caught:
        request_source(window(asked), "m", tmp_path)
    assert str(asked.digest) in caught.value.remedy


def test_another_file_than_the_plan_was_read_with_is_refused(tmp_path: Path) -> None:
    asked = in_file(tmp_path, "jsonl", '{"prompt":"a"}', 1)
    assert asked.digest is not None
    (tmp_path / asked.digest.hex).write_text('{"prompt":"b"}')
    with pytest.raises(BindingError, match="want sha256"):
        request_source(window(asked), "m", tmp_path)


@pytest.mark.parametrize(
    ("prompts", "endpoint"),
    [
        (Prompts("random", 1, 0, False, input_tokens=3, token_low=0, token_high=9), "chat"),
        (Prompts("random", 1, 0, True, input_tokens=3, token_low=0, token_high=9), "completions"),
        (Prompts("random", 1, 0, True, input_tokens=3, token_low=0, token_high=1), "completions"),
        (Prompts("builtin", 129, 0, False), "completions"),
    ],
)
def test_prompts_that_do_not_fit(prompts: Prompts, endpoint: str) -> None:
    with pytest.raises(PlanError):
        request_source(window(prompts, endpoint), "m")


def test_the_builtin_texts_differ() -> None:
    assert len(set(builtin_prompts())) == len(builtin_prompts()) == 128


def test_a_file_without_prompts_is_told_so_and_not_to_ask_for_none(tmp_path: Path) -> None:
    prompts = in_file(tmp_path, "jsonl", "\n", count=1)
    with pytest.raises(PlanError) as caught:
        request_source(window(prompts), "m", tmp_path)
    assert caught.value.remedy == "name a file that holds prompts: a/p has none"


def test_half_a_surrogate_pair_is_no_prompt(tmp_path: Path) -> None:
    prompts = in_file(tmp_path, "jsonl", '{"prompt":"a"}\n{"prompt":"\\udc00"}\n', count=1)
    with pytest.raises(PlanError, match="p:2: text with a lone surrogate"):
        request_source(window(prompts), "m", tmp_path)
