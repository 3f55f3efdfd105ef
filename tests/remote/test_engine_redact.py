"""Secrets and names that must not reach a record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remote.engine.redact import MARK, redact, redact_value

CAPTURES = Path(__file__).parents[1] / "fixtures" / "vllm-0.29.0"
TOKEN = "hf_" + "a1B2c3D4e5F6g7H8"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"non-default args: {{'hf_token': '{TOKEN}', 'port': 1}}",
         f"non-default args: {{'hf_token': '{MARK}', 'port': 1}}"),
        (f"--hf-token {TOKEN} --port 1", f"--hf-token {MARK} --port 1"),
        (f"HF_TOKEN={TOKEN}", f"HF_TOKEN={MARK}"),
        (f"got {TOKEN}.", f"got {MARK}."),
        ("'api_key': ['one', 'two'], 'port': 1", f"'api_key': ['{MARK}'], 'port': 1"),
        ("--api-key=swordfish --port 1", f"--api-key={MARK} --port 1"),
        ("--api-key one two --port 1", f"--api-key {MARK} --port 1"),
        ("['--api-key', 'swordfish', '--port', '1']", f"['--api-key', '{MARK}', '--port', '1']"),
        ("Authorization: Bearer abc.def-1", f"Authorization: {MARK}"),
        ("{'authorization': 'Basic YWI6Y2Q=', 'x': 1}", f"{{'authorization': '{MARK}', 'x': 1}}"),
        (r'{"log": "{\"api_key\": \"abc\"}"}', rf'{{"log": "{{\"api_key\": \"{MARK}\"}}"}}'),
        ("https://me:pass@example.org/x", f"https://{MARK}@example.org/x"),
        ("/home/alice/.cache/vllm and /Users/bob", "~/.cache/vllm and ~"),
        ("html/home/alice/lib", "html~/lib"),
        ("in /root/.cache, /rooted stays", "in ~/.cache, /rooted stays"),
        ("mq_connect_ip=192.0.2.2 (local)", f"mq_connect_ip={MARK} (local)"),
        ("tcp://10.1.2.3:5000", f"tcp://{MARK}:5000"),
    ],
)  # fmt: skip
def test_hidden(text: str, kept: str) -> None:
    assert redact(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8011 and 0.0.0.0",
        "nvidia-cudnn==9.10.2.21",
        "Driver Version: 580.159.04",
        "'hf_token': None, 'api_key': None",
        "tokenizer='/models/smol', num_speculative_tokens: 4, max_tokens=8",
        "prefix cache key: block",
    ],
)
def test_left_alone(text: str) -> None:
    assert redact(text) == text


def test_names_known_to_the_caller() -> None:
    assert redact("gpu-box-7: user carol, carolina", ["gpu-box-7", "carol", ""]) == (
        f"{MARK}: user {MARK}, carolina"
    )


def test_the_captures_keep_their_lines() -> None:
    for path in CAPTURES.glob("*/*.log"):
        text = path.read_bytes().decode()
        cleaned = redact(text)
        assert cleaned.count("\n") == text.count("\n")
        assert "/home/" not in cleaned


SCRAPS = st.sampled_from(
    ["authorization: ", "Bearer ", "--api-key ", "hf_token=", "'", '"', "[", "]", " ", ",", "\n",
     MARK, "<", TOKEN, "/home/", "/root", "alice", "10.0.0.1", "://", "@", ":", "=", "None", "x"]
)  # fmt: skip


TEXTS = st.lists(SCRAPS, max_size=8).map("".join)


@given(st.dictionaries(TEXTS, st.lists(TEXTS, max_size=3)))
def test_values_are_redacted_one_by_one(value: dict[str, list[str]]) -> None:
    once = redact_value(value)
    assert redact_value(once) == once
    assert TOKEN not in json.dumps(once)


def test_what_a_credentials_key_holds_goes_whole() -> None:
    value = {"env": {"HF_TOKEN": "x y", "api_key": ["a"], "tokens": 3, "hf_token": None}, "n": [1]}
    assert redact_value(value) == {
        "env": {"HF_TOKEN": MARK, "api_key": MARK, "tokens": 3, "hf_token": None},
        "n": [1],
    }


@given(st.lists(SCRAPS, max_size=12).map("".join))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert once.count("\n") == text.count("\n")
    assert TOKEN not in once
