"""The bytes of a response as vLLM 0.29.0 sends them: HTTP head, JSON, server-sent events, chunks.

Invariant: no clock and no I/O; a response is an iterator of pieces, each encoded only when asked
for, so that the server prepares the next chunk in the idle time before it is due. Shapes follow
tests/fixtures/vllm-0.29.0/cpu/http.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from remote.reference.schedule import Drawn
from remote.reference.vocabulary import ids_json, text_json

FINGERPRINT = "vllm-0.29.0-synthetic"

# What happens to the connection after a piece is sent.
MORE, DONE, CLOSE, RESET, STALL = range(5)

# How the body is delimited.
CHUNKED, LENGTH, UNTIL_CLOSE = range(3)


class Event(NamedTuple):
    """One server-sent event: the wait before it, its JSON (or [DONE]), whether it is a chunk."""

    wait_ns: int
    data: bytes
    content: bool


class Piece(NamedTuple):
    """One send: the wait before it, its bytes, the chunks that end in it, what follows."""

    wait_ns: int
    data: bytes
    chunks: int = 0
    then: int = MORE


@dataclass(frozen=True, slots=True)
class Reply:
    """What a response says, apart from how it is framed; `usage_lie` is added to its usage."""

    chat: bool
    response_id: str
    created: int
    model: str
    prompt_ids: tuple[int, ...]
    drawn: Drawn
    finish_reason: str = "length"
    return_token_ids: bool = False
    include_usage: bool = False
    continuous_usage: bool = False
    spec_metrics: bool = True
    usage_lie: int = 0
    send_usage: bool = True
    send_done: bool = True
    tail_wait_ns: int = 0


def dumps(value: Any) -> bytes:
    """Compact JSON as vLLM's: no spaces, keys in the order written."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def head(
    status: str, content_type: str, date: str, framing: int, length: int = 0, *, close: bool = False
) -> bytes:
    """The response head, fields in uvicorn's order; no content type where it is empty."""
    lines = [f"HTTP/1.1 {status}", f"date: {date}", "server: reference-server"]
    if framing == LENGTH:
        lines.append(f"content-length: {length}")
    if content_type:
        lines.append(f"content-type: {content_type}")
    lines.append("vary: Origin")
    if close or framing == UNTIL_CLOSE:
        lines.append("connection: close")
    if framing == CHUNKED:
        lines.append("transfer-encoding: chunked")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def whole(
    status: str,
    content_type: str,
    content: bytes,
    date: str,
    *,
    close: bool,
    wait_ns: int = 0,
    chunks: int = 0,
) -> Iterator[Piece]:
    """An unstreamed answer: one piece with head and body."""
    data = head(status, content_type, date, LENGTH, len(content), close=close) + content
    yield Piece(wait_ns, data, chunks, CLOSE if close else DONE)


def usage(reply: Reply, completion_tokens: int) -> dict[str, Any]:
    """The usage object after so many tokens."""
    prompt = len(reply.prompt_ids)
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def spec_metrics(drawn: Drawn) -> dict[str, Any]:
    """vLLM's --per-request-spec-decode-metrics detailed, for the steps of one response."""
    steps, accepted, k = len(drawn.accepted), sum(drawn.accepted), drawn.drafted
    return {
        "mean_acceptance_length": 1 + accepted / steps if steps else None,
        "draft_acceptance_rate": accepted / (steps * k) if steps else None,
        "acceptance_histogram": [
            sum(1 for a in drawn.accepted if a == position) for position in range(k + 1)
        ],
        "num_spec_steps": steps,
        "num_accepted_draft_tokens": accepted,
        "num_draft_tokens": steps * k,
        "num_spec_tokens": k,
        "per_step_accepted": list(drawn.accepted),
        "per_step_drafted": [k] * steps,
    }


def events(reply: Reply) -> Iterator[Event]:
    """The events of a streamed response in order, encoded one at a time."""
    drawn = reply.drawn
    kind = "chat.completion.chunk" if reply.chat else "text_completion"
    opening = (
        dumps({"id": reply.response_id, "object": kind, "created": reply.created})[:-1]
        + b","
        + dumps({"model": reply.model})[1:-1]
        + b',"choices":['
    )
    prompt = dumps(list(reply.prompt_ids)) if reply.return_token_ids else b"null"
    if reply.chat:
        role = b'{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,'
        told = _continuous(reply, 0)
        ending = b'"finish_reason":null}]%b,"prompt_token_ids":%b,"prompt_text":null}'
        yield Event(drawn.waits_ns[0], opening + role + ending % (told, prompt), False)
    position, last, spoken = drawn.text_start, len(drawn.tokens) - 1, 0
    finish = b'"' + reply.finish_reason.encode() + b'"'
    closing = b""
    if not (reply.include_usage and reply.send_usage):
        closing = b',"system_fingerprint":"' + FINGERPRINT.encode() + b'"'
    form = b'%b{"index":0,"text":"%b","logprobs":null,"finish_reason":%b,%b"token_ids":%b}]%b%b}'
    if reply.chat:
        form = form.replace(b'"text":"%b"', b'"delta":{"content":"%b"}')
    for i, count in enumerate(drawn.tokens):
        wait = 0 if reply.chat and i == 0 else drawn.waits_ns[i]
        ids = ids_json(position, count) if reply.return_token_ids else b"null"
        if reply.chat:
            between = b'"stop_reason":null,' if i == last else b""
        elif i == 0:
            between = b'"stop_reason":null,"prompt_token_ids":' + prompt + b","
        else:
            between = b'"stop_reason":null,"prompt_token_ids":null,'
        spoken += count
        told = _continuous(reply, spoken) if reply.continuous_usage else b""
        data = form % (
            opening,
            text_json(position, count),
            finish if i == last else b"null",
            between,
            ids,
            told,
            closing if i == last else b"",
        )
        yield Event(wait, data, True)
        position += count
    tail_wait = reply.tail_wait_ns
    if reply.include_usage and reply.send_usage:
        final: dict[str, Any] = {
            "usage": usage(reply, spoken + reply.usage_lie),
            "system_fingerprint": FINGERPRINT,
        }
        if reply.spec_metrics and drawn.drafted:
            final["metrics"] = {"speculative_decoding": spec_metrics(drawn)}
        yield Event(tail_wait, opening + b"]," + dumps(final)[1:], False)
        tail_wait = 0
    if reply.send_done:
        yield Event(tail_wait, b"[DONE]", False)


def body(reply: Reply) -> bytes:
    """The JSON of the unstreamed response."""
    drawn = reply.drawn
    spoken = sum(drawn.tokens)
    text = json.loads(b'"' + text_json(drawn.text_start, spoken) + b'"')
    ids = json.loads(ids_json(drawn.text_start, spoken)) if reply.return_token_ids else None
    prompt = list(reply.prompt_ids) if reply.return_token_ids else None
    choice: dict[str, Any] = {"index": 0}
    if reply.chat:
        unset = ("refusal", "annotations", "audio", "function_call", "reasoning")
        choice["message"] = {"role": "assistant", "content": text, **dict.fromkeys(unset)}
    else:
        choice["text"] = text
    choice |= {"logprobs": None, "finish_reason": reply.finish_reason, "stop_reason": None}
    choice["token_ids"] = ids
    if reply.chat:
        choice["routed_experts"] = None
    else:
        choice |= {"prompt_logprobs": None, "prompt_token_ids": prompt, "routed_experts": None}
    value: dict[str, Any] = {
        "id": reply.response_id,
        "object": "chat.completion" if reply.chat else "text_completion",
        "created": reply.created,
        "model": reply.model,
        "choices": [choice],
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": usage(reply, spoken + reply.usage_lie)
        | {"prompt_tokens_details": None, "completion_tokens_details": None},
    }
    if reply.chat:
        value |= {"prompt_logprobs": None, "prompt_token_ids": prompt, "prompt_text": None}
    value |= {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}
    if reply.spec_metrics and drawn.drafted:
        timings = ("time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms")
        value["metrics"] = dict.fromkeys((*timings, "tokens_per_second"))
        value["metrics"]["speculative_decoding"] = spec_metrics(drawn)
    return dumps(value)


def _continuous(reply: Reply, spoken: int) -> bytes:
    if not reply.continuous_usage:
        return b""
    return b',"usage":' + dumps(usage(reply, spoken))
