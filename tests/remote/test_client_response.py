"""A request's record from the reads of its response: captures of the engine, cut in any way."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.measurement import Request
from remote.client.response import Response

CAPTURES = Path(__file__).parents[1] / "fixtures/vllm-0.29.0/cpu/http"


def replay(data: bytes, reads: list[tuple[int, int]], *, closed: bool = True) -> Request:
    """The record of a response whose reads came at these times (ns) with these sizes."""
    response = Response(0, -1)
    response.sent_ns = at = 0
    for ns, size in reads:
        if not response.ended:
            response.read(ns, data[at : at + size])
        at += size
    if not response.ended and closed:
        response.fail("truncated", "the server closed in mid-response", reads[-1][0])
    return response.record(0, 0, 0)


def capture(name: str) -> tuple[bytes, list[tuple[int, int]]]:
    reads = json.loads((CAPTURES / f"{name}.reads.json").read_text())
    return (CAPTURES / f"{name}.http").read_bytes(), [(ns, size) for ns, size in reads]


def token_ids(data: bytes) -> list[int]:
    """The output ids of a capture, found without any parser of ours."""
    found: list[int] = []
    for part in data.split(b',"token_ids":')[1:]:
        if part.startswith(b"["):
            found += json.loads(part[: part.index(b"]") + 1])
    return found


@pytest.mark.parametrize(
    ("name", "tokens", "reason"),
    [
        ("completions-usage", 48, "length"),
        ("completions-continuous-usage", 48, "length"),
        ("chat-usage", 48, "length"),
        ("completions-token-id-prompt", 8, "length"),
        ("stop-early", -1, "stop"),
    ],
)
def test_captured_streams_complete(name: str, tokens: int, reason: str) -> None:
    data, reads = capture(name)
    request = replay(data, reads)
    assert (request.outcome, request.error, request.detail) == ("completed", "", "")
    assert request.finish_reason == reason
    assert request.status == 200
    assert request.first_byte_ns == reads[0][0]
    assert request.end_ns == reads[-1][0]
    if tokens > 0:
        assert sum(request.chunk_tokens) == tokens
    if "usage" in name:
        assert request.completion_tokens == tokens
    prompt = {"chat-usage": 39, "completions-usage": 7}.get(name)
    if prompt is not None:
        assert request.prompt_tokens == prompt
    ids = token_ids(data)
    assert sum(request.chunk_tokens) == len(ids)
    digest = hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()
    assert request.tokens_digest is not None
    assert request.tokens_digest.hex == digest


def test_acceptance_by_step_agrees_with_the_chunks() -> None:
    request = replay(*capture("completions-continuous-usage"))
    # The first chunk is the prefill's own token, every further one a step of 1 + accepted; the last
    # one is cut short by max_tokens.
    steps = [1 + n for n in request.step_accepted]
    assert steps[:-1] == list(request.chunk_tokens[1:-1])
    assert steps[-1] >= request.chunk_tokens[-1]


def test_a_chunk_is_stamped_by_the_read_that_ended_it() -> None:
    data, reads = capture("completions-usage")
    request = replay(data, reads)
    assert request.merged == ()
    assert list(request.chunk_ns) == [ns for ns, _ in reads[1 : 1 + len(request.chunk_ns)]]


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("engine-killed-mid-stream", "truncated", "closed in mid-response"),
        ("aborted-by-client", "truncated", "closed in mid-response"),
        ("completions-no-token-ids", "no-token-counts", "neither token_ids nor usage"),
        ("error-404", "http-status", "404: Not Found"),
        ("error-bad-json", "http-status", "40"),
        ("error-too-long", "http-status", "400: "),
        ("error-unknown-model", "http-status", "404: "),
        ("chat-not-streamed", "bad-event", "not an event stream"),
        ("models", "bad-event", "not an event stream"),
        ("metrics", "bad-event", "not an event stream"),
    ],
)
def test_captured_failures_say_what_happened(name: str, error: str, words: str) -> None:
    data, reads = capture(name)
    request = replay(data, reads)
    assert (request.outcome, request.error) == ("failed", error)
    assert words in request.detail
    assert len(request.detail) <= 200


def test_an_engine_killed_in_mid_stream_leaves_its_chunks() -> None:
    data, reads = capture("engine-killed-mid-stream")
    request = replay(data, reads)
    assert len(request.chunk_ns) == data.count(b"data: {")
    assert (request.finish_reason, request.completion_tokens) == ("", -1)


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.http")), ids=lambda path: path.stem)
def test_single_bytes_say_the_same_as_the_reads_that_came(path: Path) -> None:
    data, reads = capture(path.stem)
    whole, dripped = replay(data, reads), replay(data, [(n, 1) for n in range(len(data))])
    assert dripped.merged == ()
    assert without_times(dripped) == without_times(whole)


def without_times(request: Request) -> list[object]:
    return [
        request.outcome, request.error, request.detail, request.status, request.chunk_tokens,
        request.prompt_tokens, request.completion_tokens, request.finish_reason,
        request.tokens_digest, request.step_accepted,
    ]  # fmt: skip


STREAM = capture("completions-continuous-usage")[0]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=80))
def test_any_cut_gives_the_same_chunks_at_the_reads_with_their_last_byte(cuts: list[int]) -> None:
    edges = sorted({0, *cuts, len(STREAM)})
    reads = [(b, b - a) for a, b in pairwise(edges)]  # a read's time: the offset at which it ends
    request = replay(STREAM, reads)
    ends, at = [], 0
    while (at := STREAM.find(b"\n\n", at)) >= 0:
        at += 2
        ends.append(at)
    ends = ends[: len(request.chunk_ns)]  # content comes before usage and [DONE]
    stamps = [min(edge for edge in edges if edge >= end) for end in ends]
    assert list(request.chunk_ns) == stamps
    assert sum(request.chunk_tokens) == 48
    later = [i for i in range(len(stamps) - 1) if stamps[i] == stamps[i + 1]]
    assert list(request.merged) == later


def stream(*events: bytes, kind: bytes = b"text/event-stream") -> bytes:
    body = b"".join(b"data: " + data + b"\n\n" for data in events)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
    return head % (kind, len(body)) + body


def one(data: bytes) -> Request:
    return replay(data, [(1, len(data))])


def chunk(**fields: object) -> bytes:
    return json.dumps({"choices": [{"text": "x", **fields}]}).encode()


def counted(total: int, text: str = "x") -> bytes:
    usage = {"prompt_tokens": 3, "completion_tokens": total}
    return json.dumps({"choices": [{"text": text}], "usage": usage}).encode()


def test_without_ids_tokens_are_differences_of_usage() -> None:
    request = one(stream(counted(1), counted(4), counted(4), counted(5, ""), b"[DONE]"))
    assert (request.outcome, request.chunk_tokens) == ("completed", (1, 3, 0, 1))
    assert request.tokens_digest is None


def test_lying_usage_is_a_failure() -> None:
    usage = b'{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":9}}'
    request = one(stream(chunk(token_ids=[1]), chunk(token_ids=[2, 3]), usage, b"[DONE]"))
    assert (request.error, request.chunk_tokens) == ("usage-mismatch", (1, 2))
    assert "9" in request.detail


def test_an_error_event_keeps_the_chunks_before_it() -> None:
    error = b'{"error":{"message":"out of memory, token hf_abcdefghijklmnopqrst"}}'
    request = one(stream(chunk(token_ids=[1]), error, b"[DONE]"))
    assert (request.outcome, request.error) == ("failed", "server-error")
    assert request.chunk_tokens == (1,)
    assert "hf_abc" not in request.detail


def test_a_broken_event_fails_and_the_later_chunks_still_count() -> None:
    request = one(stream(chunk(token_ids=[1]), b'{"choices":[{', chunk(token_ids=[2]), b"[DONE]"))
    assert (request.error, request.chunk_tokens) == ("bad-event", (1, 1))


def test_a_stream_without_done_is_truncated() -> None:
    assert one(stream(chunk(token_ids=[1]))).error == "truncated"


def test_bytes_that_are_no_http() -> None:
    request = one(b"hello\r\n\r\n")
    assert (request.outcome, request.error, request.status) == ("failed", "bad-http", 0)


def test_long_server_messages_are_cut() -> None:
    body = json.dumps({"error": {"message": "m" * 5000}}).encode()
    head = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: %d\r\n\r\n" % len(body)
    request = one(head + body)
    assert request.error == "http-status"
    assert len(request.detail) == 200
