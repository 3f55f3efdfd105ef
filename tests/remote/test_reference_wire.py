"""The bytes of the reference server against captures of vLLM 0.29.0, key by key and in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remote.reference import faults, wire
from remote.reference.faults import KINDS, Fault, parse_fault, stream
from remote.reference.schedule import Drawn, Schedule, draw, parse_delay, parse_tokens
from remote.reference.wire import Reply

CAPTURES = Path(__file__).parents[1] / "fixtures/vllm-0.29.0/cpu/http"
DATE = "Mon, 30 Nov 2026 10:23:29 GMT"
# What only a real engine can say.
OTHER_VALUES = {"server", "date", "content-length"}


def drawn(n: int = 48, rule: str = "accept:4:1.6") -> Drawn:
    schedule = Schedule(parse_delay("100ms"), parse_delay("20ms"), parse_tokens(rule))
    return draw(schedule, "x", n)


def reply(**more: Any) -> Reply:
    base: dict[str, Any] = {
        "chat": False,
        "response_id": "cmpl-8de2b1655b27f790",
        "created": 1796034210,
        "model": "smol",
        "prompt_ids": (504, 1463, 282),
        "drawn": drawn(),
        "return_token_ids": True,
    }
    return Reply(**(base | more))


def split(raw: bytes) -> tuple[list[str], list[bytes]]:
    """Header lines and HTTP chunks (or the whole body as one)."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    if b"transfer-encoding: chunked" not in head:
        return lines, [body]
    chunks = []
    while body:
        size, _, body = body.partition(b"\r\n")
        n = int(size, 16)
        chunks.append(body[:n])
        assert body[n : n + 2] == b"\r\n"
        body = body[n + 2 :]
    return lines, chunks


def shape(value: Any) -> Any:
    """The keys in order and the types; lists by the shape of their first item."""
    if isinstance(value, dict):
        return [(key, shape(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def payloads(chunks: list[bytes]) -> list[Any]:
    """The JSON of each SSE event; [DONE] and the last chunk as text."""
    values: list[Any] = []
    for chunk in chunks:
        if chunk in (b"", b"data: [DONE]\n\n"):
            values.append(chunk)
            continue
        assert chunk.startswith(b"data: ")
        assert chunk.endswith(b"\n\n")
        data = chunk[6:-2]
        value = json.loads(data)
        # The serialisation itself: no spaces, UTF-8 as it is.
        assert wire.dumps(value) == data
        values.append(value)
    return values


def sent(answer: Reply, *names: str) -> bytes:
    given = [parse_fault(name) for name in names]
    return b"".join(p.data for p in stream(answer, given, DATE, close=True))


@pytest.mark.parametrize(
    ("capture", "more"),
    [
        ("completions-usage", {"include_usage": True}),
        ("completions-continuous-usage", {"include_usage": True, "continuous_usage": True}),
        ("completions-no-token-ids", {"return_token_ids": False}),
        ("completions-token-id-prompt", {}),
        ("chat-usage", {"chat": True, "include_usage": True}),
    ],
)
def test_streams_have_the_shape_of_the_capture(capture: str, more: dict[str, Any]) -> None:
    theirs_head, theirs = split((CAPTURES / f"{capture}.http").read_bytes())
    ours_head, ours = split(sent(reply(**more)))
    for their_line, our_line in zip(theirs_head, ours_head, strict=True):
        name = their_line.split(":")[0]
        assert our_line.startswith(name)
        assert our_line == their_line or name in OTHER_VALUES
    theirs_json, ours_json = payloads(theirs), payloads(ours)
    their_content = [v for v in theirs_json if v and v != b"data: [DONE]\n\n"]
    our_content = [v for v in ours_json if v and v != b"data: [DONE]\n\n"]
    # First, second, one in the middle, the last three: role, prompt ids, finish, usage.
    for i in (0, 1, 2, -3, -2, -1):
        assert shape(our_content[i]) == shape(their_content[i]), i
    assert ours[-2:] == theirs[-2:]


def test_unstreamed_chat_has_the_shape_of_the_capture() -> None:
    _, (theirs,) = split((CAPTURES / "chat-not-streamed.http").read_bytes())
    ours = wire.body(reply(chat=True, return_token_ids=False))
    assert shape(json.loads(ours)) == shape(json.loads(theirs))


def test_the_metrics_of_a_capture_follow_from_its_steps() -> None:
    _, chunks = split((CAPTURES / "completions-usage.http").read_bytes())
    theirs = payloads(chunks)[-3]["metrics"]["speculative_decoding"]
    steps = theirs["per_step_accepted"]
    ours = wire.spec_metrics(Drawn([], [], steps, theirs["num_spec_tokens"], 0, 0))
    assert ours == theirs


def test_tokens_and_usage_agree() -> None:
    answer = reply(include_usage=True, continuous_usage=True)
    values = payloads(split(sent(answer))[1])[:-2]
    counts = [len(v["choices"][0]["token_ids"]) for v in values[:-1]]
    assert counts == list(answer.drawn.tokens)
    running = [v["usage"]["completion_tokens"] for v in values[:-1]]
    assert running == [sum(counts[: i + 1]) for i in range(len(counts))]
    assert values[-1]["usage"]["completion_tokens"] == 48


@pytest.mark.parametrize("chat", [False, True])
def test_the_fast_path_sends_the_same_bytes_as_the_general_one(chat: bool) -> None:
    answer = reply(chat=chat, include_usage=True)
    general = list(faults._faulty(answer, [], DATE, close=False))
    assert list(stream(answer, [], DATE, close=False)) == general


def test_waits_and_chunks_follow_the_schedule() -> None:
    for chat in (False, True):
        answer = reply(chat=chat, include_usage=True)
        pieces = list(stream(answer, [], DATE, close=False))
        assert sum(p.chunks for p in pieces) == len(answer.drawn.tokens)
        assert sum(p.wait_ns for p in pieces) == sum(answer.drawn.waits_ns)
        assert [p.then for p in pieces[:-1]] == [wire.MORE] * (len(pieces) - 1)
        assert pieces[-1].then == wire.DONE


def test_every_fault_has_its_effect_on_the_pieces() -> None:
    answer = reply(include_usage=True)
    plain = list(stream(answer, [], DATE, close=False))
    for kind in KINDS:
        if kind in ("status", "stop", "wrong-usage", "miscount", "no-usage", "no-done"):
            continue  # made by the service, seen in test_reference_faults.py
        pieces = list(stream(answer, [parse_fault(kind)], DATE, close=False))
        assert pieces != plain, kind
        assert pieces[-1].then != wire.MORE, kind


def test_a_dripped_chunk_ends_with_its_blank_line() -> None:
    answer = reply()
    pieces = list(stream(answer, [Fault("drip", 5)], DATE, close=False))
    assert {len(p.data) for p in pieces} == {1}
    said = b""
    for piece in pieces:
        said += piece.data
        if piece.chunks:
            assert said.endswith(b"}\n\n")
    assert said == b"".join(p.data for p in stream(answer, [], DATE, close=False))


def test_merged_chunks_keep_the_bytes_and_the_time() -> None:
    answer = reply()
    plain = list(stream(answer, [], DATE, close=False))
    merged = list(stream(answer, [Fault("merge", 2)], DATE, close=False))
    assert b"".join(p.data for p in merged) == b"".join(p.data for p in plain)
    assert sum(p.wait_ns for p in merged) == sum(p.wait_ns for p in plain)
    assert [p.chunks for p in merged if p.chunks][:-1] == [2] * (len(answer.drawn.tokens) // 2)
