"""What one event of an OpenAI-compatible stream says: tokens, usage, finish, error.

Invariant: a token count comes from `token_ids` or from a usage the server sent, never from text.
Shapes: vLLM 0.29.0, completions and chat completions (tests/fixtures/vllm-0.29.0/cpu/http).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DONE = b"[DONE]"
# Where content may stand in a chat delta; completions have `text`.
_DELTA_CONTENT = ("content", "reasoning", "reasoning_content", "tool_calls", "refusal")


class EventError(Exception):
    """An event that is not what this API sends."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counts them so far; -1: not said."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `token_ids` is None where the server sent none; `content`: text or ids came.

    `error` is the server's message of an error event, "" otherwise. `step_accepted`: accepted
    draft tokens by step, empty where not reported.
    """

    content: bool = False
    token_ids: tuple[int, ...] | None = None
    usage: Usage | None = None
    finish_reason: str = ""
    error: str = ""
    step_accepted: tuple[int, ...] = ()
    has_choices: bool = False


def parse_event(data: bytes) -> Event:
    """Read the data of an event that is not [DONE]. EventError where it has another shape."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise EventError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise EventError("not a JSON object")
    if value.get("error"):
        return Event(error=error_message(value))
    usage = value.get("usage")
    choices = value.get("choices")
    if not isinstance(choices, list):
        raise EventError("no choices")
    content, ids, finish = False, None, ""
    for choice in choices:
        if not isinstance(choice, dict):
            raise EventError("a choice is not an object")
        content = content or _has_text(choice)
        new = choice.get("token_ids")
        if new is not None:
            ids = (ids or ()) + _ints(new, "token_ids")
        finish = _string(choice.get("finish_reason")) or finish
    return Event(
        content=content or bool(ids),
        token_ids=ids,
        usage=None if usage is None else _usage(usage),
        finish_reason=finish,
        step_accepted=_step_accepted(value.get("metrics")),
        has_choices=bool(choices),
    )


def error_message(value: Mapping[str, Any]) -> str:
    """The words in an error body: OpenAI's {"error": {"message"}}, FastAPI's {"detail"}, or all."""
    error = value.get("error", value.get("detail"))
    if isinstance(error, dict):
        error = error.get("message") or error
    return error if isinstance(error, str) and error else json.dumps(error or value)


def _has_text(choice: Mapping[str, Any]) -> bool:
    if choice.get("text"):
        return True
    delta = choice.get("delta")
    return isinstance(delta, dict) and any(delta.get(key) for key in _DELTA_CONTENT)


def _usage(value: Any) -> Usage:
    if not isinstance(value, dict):
        raise EventError("usage is not an object")
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        _count(value.get("prompt_tokens")), _count(value.get("completion_tokens")), _count(cached)
    )


def _step_accepted(metrics: Any) -> tuple[int, ...]:
    spec = metrics.get("speculative_decoding") if isinstance(metrics, dict) else None
    steps = spec.get("per_step_accepted") if isinstance(spec, dict) else None
    return () if steps is None else _ints(steps, "per_step_accepted")


def _ints(value: Any, name: str) -> tuple[int, ...]:
    if not isinstance(value, list) or any(type(item) is not int for item in value):
        raise EventError(f"{name} is not a list of integers")
    return tuple(value)


def _count(value: Any) -> int:
    if value is None:
        return -1
    if type(value) is not int or value < 0:
        raise EventError(f"a token count is {str(value)[:40]!r}")
    return value


def _string(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise EventError(f"finish_reason is {str(value)[:40]!r}")
    return value
