"""What one event says, on events as vLLM sends them and on what other servers make of them."""

from __future__ import annotations

import json

import pytest

from remote.client.openai import EventError, Usage, error_message, parse_event


def event(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def test_token_ids_and_usage_of_a_completions_chunk() -> None:
    data = event(
        choices=[{"index": 0, "text": " of", "finish_reason": None, "token_ids": [282, 260]}],
        usage={"prompt_tokens": 7, "total_tokens": 13, "completion_tokens": 6},
    )
    said = parse_event(data)
    assert (said.content, said.token_ids, said.finish_reason) == (True, (282, 260), "")
    assert said.usage == Usage(7, 6, -1)


def test_a_chat_role_is_no_content() -> None:
    said = parse_event(event(choices=[{"delta": {"role": "assistant", "content": ""}}]))
    assert (said.content, said.token_ids, said.has_choices) == (False, None, True)


@pytest.mark.parametrize("key", ["content", "reasoning", "reasoning_content", "tool_calls"])
def test_what_counts_as_content_of_a_chat_delta(key: str) -> None:
    assert parse_event(event(choices=[{"delta": {key: "x"}}])).content


def test_tokens_without_text_are_content() -> None:
    assert parse_event(event(choices=[{"text": "", "token_ids": [9]}])).content


def test_accepted_tokens_by_step() -> None:
    spec = {"speculative_decoding": {"per_step_accepted": [0, 2, 1]}}
    details = {"cached_tokens": 16}
    said = parse_event(event(choices=[], usage={"prompt_tokens_details": details}, metrics=spec))
    assert (said.step_accepted, said.usage) == ((0, 2, 1), Usage(-1, -1, 16))


def test_an_error_event() -> None:
    said = parse_event(event(error={"message": "engine dead", "type": "InternalServerError"}))
    assert said.error == "engine dead"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'"x"',
        b"\xff",
        b"{}",
        b'{"choices":{}}',
        b'{"choices":[1]}',
        b'{"choices":[{"token_ids":["a"]}]}',
        b'{"choices":[{"token_ids":[true]}]}',
        b'{"choices":[{"finish_reason":1}]}',
        b'{"choices":[],"usage":[]}',
        b'{"choices":[],"usage":{"completion_tokens":-1}}',
        b"[" * 100_000,
    ],
)
def test_anything_else_is_an_error(data: bytes) -> None:
    with pytest.raises(EventError):
        parse_event(data)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "too long", "code": 400}}, "too long"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"error": "plain"}, "plain"),
        ({"other": 1}, '{"other": 1}'),
    ],
)
def test_the_words_of_an_error_body(body: dict[str, object], words: str) -> None:
    assert error_message(body) == words
