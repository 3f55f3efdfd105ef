"""Prompts out of the files that people measure with: JSONL, Spec-Bench, ShareGPT.

Invariant: a file is read whole and strictly; an entry that is not of its format is an error, one
without a first turn of text to send is passed over only in ShareGPT, where such entries are known.
"""

from __future__ import annotations

import json
from typing import Any

from records.errors import PlanError

# A prompt: text, or token ids for the completions endpoint.
Prompt = str | tuple[int, ...]
_HOW = "correct the file, or name its format in prompts.source"


def read_prompts(source: str, data: bytes, name: str) -> list[Prompt]:
    """The prompts of a file, in its order. PlanError names the line or entry that does not fit."""
    if source == "sharegpt":
        return _sharegpt(data, name)
    read = _jsonl_line if source == "jsonl" else _spec_bench_line
    prompts: list[Prompt] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            prompt = read(_json(line, f"{name}:{number}"))
            if prompt is None:
                raise PlanError(f"{name}:{number}: not a {source} prompt: {line[:60]!r}", _HOW)
            prompts.append(_sendable(prompt, f"{name}:{number}"))
    return prompts


def _jsonl_line(value: Any) -> Prompt | None:
    """{"prompt": "text"} or {"prompt": [token ids]}; other keys are the file's own."""
    prompt = value.get("prompt") if isinstance(value, dict) else None
    if isinstance(prompt, str) and prompt:
        return prompt
    if isinstance(prompt, list) and prompt and all(type(i) is int and i >= 0 for i in prompt):
        return tuple(prompt)
    return None


def _spec_bench_line(value: Any) -> Prompt | None:
    """Spec-Bench's question.jsonl: {"question_id", "category", "turns": [text, …]}; turn one."""
    turns = value.get("turns") if isinstance(value, dict) else None
    return turns[0] if isinstance(turns, list) and turns and isinstance(turns[0], str) else None


def _sharegpt(data: bytes, name: str) -> list[Prompt]:
    """A list of {"conversations": [{"from", "value"}, …]}; the first turn, if a person's."""
    entries = _json(data, name)
    if not isinstance(entries, list):
        raise PlanError(f"{name}: not a ShareGPT file: a list is expected", _HOW)
    prompts: list[Prompt] = []
    for number, entry in enumerate(entries):
        turns = entry.get("conversations") if isinstance(entry, dict) else None
        if not isinstance(turns, list):
            raise PlanError(f"{name}: entry {number} has no conversations", _HOW)
        first = turns[0] if turns else None
        if isinstance(first, dict) and first.get("from") in ("human", "user"):
            value = first.get("value")
            if isinstance(value, str) and value:
                prompts.append(_sendable(value, f"{name}: entry {number}"))
    return prompts


def _sendable(prompt: Prompt, where: str) -> Prompt:
    """PlanError for half a surrogate pair, which JSON can spell and UTF-8 cannot carry."""
    if isinstance(prompt, str):
        try:
            prompt.encode()
        except UnicodeEncodeError as error:
            raise PlanError(f"{where}: text with a lone surrogate: {error}", _HOW) from error
    return prompt


def _json(data: bytes, where: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{where}: not JSON: {error}", _HOW) from error
