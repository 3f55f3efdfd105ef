"""What a client asked for: the body of /v1/completions or /v1/chat/completions, decoded.

Invariant: an ask that vLLM 0.29.0 would refuse is refused with its status and JSON (captures
error-*.http); options of the reference server come from `x-reference` or the key `reference`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from records.errors import ScheduleError
from remote.reference.faults import Fault, parse_fault
from remote.reference.schedule import (
    Schedule,
    parse_delay,
    parse_duration_ns,
    parse_tokens,
)
from remote.reference.vocabulary import tokenize
from remote.reference.wire import dumps

_KEYS = ("ttft", "gap", "tokens", "output_tokens", "seed", "fault", "faults", "tail")


@dataclass(frozen=True, slots=True)
class Options:
    """What the reference server does with a request unless the request says otherwise."""

    schedule: Schedule
    faults: tuple[Fault, ...] = ()
    output_tokens: int | None = None
    tail_wait_ns: int = 0

    def override(self, more: Mapping[str, Any]) -> Options:
        """These options with those of a request laid over. ScheduleError on unknown keys."""
        unknown = [key for key in more if key not in _KEYS]
        if unknown:
            raise ScheduleError(f"no option {unknown[0]!r}", f"use {', '.join(_KEYS)}")
        old = self.schedule
        seed, output = more.get("seed", old.seed), more.get("output_tokens", self.output_tokens)
        if not isinstance(seed, int) or not (output is None or _positive(output)):
            raise ScheduleError("seed and output_tokens are integers", "output_tokens at least 1")
        schedule = Schedule(
            parse_delay(more["ttft"]) if "ttft" in more else old.ttft,
            parse_delay(more["gap"]) if "gap" in more else old.gap,
            parse_tokens(more["tokens"]) if "tokens" in more else old.tokens,
            seed,
        )
        faults = self.faults
        if "fault" in more or "faults" in more:
            given = [more["fault"]] if "fault" in more else list(more["faults"])
            faults = tuple(parse_fault(fault) for fault in given)
        tail = parse_duration_ns(more["tail"]) if "tail" in more else self.tail_wait_ns
        return replace(
            self, schedule=schedule, faults=faults, output_tokens=output, tail_wait_ns=tail
        )


class RefusedError(Exception):
    """An ask answered with an error: `status` line and JSON `body` as vLLM's."""

    def __init__(self, status: str, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


def refusal(status: str, message: str, kind: str, param: str | None = None) -> RefusedError:
    """A RefusedError in vLLM's form."""
    error = {"message": message, "type": kind, "param": param, "code": int(status.split()[0])}
    return RefusedError(status, dumps({"error": error}))


@dataclass(frozen=True, slots=True)
class Ask:
    """One decoded request for tokens."""

    chat: bool
    prompt_ids: tuple[int, ...]
    output_tokens: int
    stream: bool
    return_token_ids: bool
    include_usage: bool
    continuous_usage: bool
    options: Options


def decode_ask(
    chat: bool, body: bytes, header: str | None, model: str, max_model_len: int, options: Options
) -> Ask:
    """The Ask in a request body and its x-reference header. RefusedError where vLLM refuses."""
    value = _json_object(body)
    if value.get("model", model) != model:
        message = f"The model `{value['model']}` does not exist."
        raise refusal("404 Not Found", message, "NotFoundError", "model")
    try:
        options = options.override(value.get("reference", {}))
        if header is not None:
            options = options.override(json.loads(header))
    except (ScheduleError, TypeError, ValueError, AttributeError) as error:
        raise _bad(f"reference options: {error}", "reference") from error
    prompt = _chat_prompt(value) if chat else _prompt(value)
    wanted = value.get("max_tokens")
    if chat and wanted is None:
        wanted = value.get("max_completion_tokens", max(1, max_model_len - len(prompt)))
    wanted = 16 if wanted is None else wanted
    if not _positive(wanted):
        raise _bad(f"max_tokens must be at least 1, got {wanted}.", "max_tokens")
    if wanted > max_model_len:
        raise _bad(
            f"max_tokens={wanted} cannot be greater than max_model_len=max_total_tokens="
            f"{max_model_len}. Please request fewer output tokens. "
            f"(parameter=max_tokens, value={wanted})",
            "max_tokens",
        )
    if len(prompt) + wanted > max_model_len:
        raise _bad(
            f"This model's maximum context length is {max_model_len} tokens. However, you "
            f"requested {wanted} output tokens and your prompt contains {len(prompt)} input "
            "tokens.",
            "input_tokens",
        )
    if value.get("n", 1) != 1:
        raise _bad("the reference server answers n=1 only", "n")
    stream_options = value.get("stream_options") or {}
    return Ask(
        chat,
        prompt,
        options.output_tokens or wanted,
        bool(value.get("stream")),
        bool(value.get("return_token_ids")),
        bool(stream_options.get("include_usage")),
        bool(stream_options.get("continuous_usage_stats")),
        options,
    )


def _positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _bad(message: str, param: str) -> RefusedError:
    return refusal("400 Bad Request", message, "BadRequestError", param)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except json.JSONDecodeError as error:
        detail = {
            "type": "json_invalid",
            "loc": ("body", error.pos),
            "msg": "JSON decode error",
            "input": {},
            "ctx": {"error": error.msg},
        }
        raise refusal(
            "400 Bad Request",
            f"1 validation error:\n  {detail}",
            "Bad Request",
            f"body.{error.pos}",
        ) from error
    except UnicodeDecodeError as error:
        raise _bad("There was an error parsing the body", "body") from error
    if not isinstance(value, dict):
        raise _bad("the body is not a JSON object", "body")
    return value


def _prompt(value: dict[str, Any]) -> tuple[int, ...]:
    prompt = value.get("prompt")
    if isinstance(prompt, str):
        return tokenize(prompt)
    if isinstance(prompt, list) and prompt and all(isinstance(item, int) for item in prompt):
        return tuple(prompt)
    raise _bad("prompt must be one text or one list of token ids", "prompt")


def _chat_prompt(value: dict[str, Any]) -> tuple[int, ...]:
    messages = value.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _bad("messages must be a list of messages", "messages")
    text = ""
    for message in messages:
        if not isinstance(message, dict):
            raise _bad("a message is an object", "messages")
        content = message.get("content") or ""
        if isinstance(content, list):
            content = " ".join(str(part.get("text", "")) for part in content)
        text += f"<start> {message.get('role', 'user')} {content} <end> "
    return tokenize(text + "<start> assistant")
