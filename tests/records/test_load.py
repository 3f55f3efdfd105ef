"""Loads, prompts, sampling and windows that contradict themselves are refused in words."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from records.digest import Digest
from records.errors import FormatError
from records.load import Load, Prompts
from records.plan import Plan

CLOSED = Load("closed", 4, requests=8)
OPEN = Load("poisson", 4, rate_millihertz=2500, duration_ms=1000)
BUILTIN = Prompts("builtin", 4, 1, True)


@pytest.mark.parametrize(
    ("good", "change", "words"),
    [
        (CLOSED, {"kind": "loop"}, "load kind 'loop'"),
        (CLOSED, {"concurrency": 0}, "concurrency"),
        (CLOSED, {"rate_millihertz": 1}, "rate_millihertz"),
        (OPEN, {"rate_millihertz": 0}, "rate_millihertz"),
        (OPEN, {"rate_millihertz": -1}, "rate_millihertz"),
        (CLOSED, {"requests": 0}, "budget"),
        (OPEN, {"duration_ms": -1}, "budget"),
        (OPEN, {"timeout_ms": 0}, "timeout_ms"),
        (BUILTIN, {"source": "web"}, "prompt source 'web'"),
        (BUILTIN, {"count": 0}, "count"),
        (BUILTIN, {"path": "x.jsonl"}, "prompts.path"),
        (BUILTIN, {"source": "jsonl"}, "prompts.path"),
        (BUILTIN, {"source": "jsonl", "path": "x"}, "prompts.digest"),
        (BUILTIN, {"digest": Digest.of(b"")}, "prompts.digest"),
        (BUILTIN, {"source": "random"}, "input_tokens"),
        (
            Prompts("random", 1, 1, True, input_tokens=1, token_high=9),
            {"token_low": 9},
            "token_low and token_high",
        ),
    ],
)
def test_contradictions(good: Any, change: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        replace(good, **change)


@pytest.mark.parametrize(
    "change",
    [
        {"max_tokens": 0, "min_tokens": 0},
        {"min_tokens": 9},
        {"min_tokens": -1},
        {"temperature": Decimal("-0.1")},
        {"top_p": Decimal(0)},
        {"top_p": Decimal("1.1")},
        {"min_p": Decimal("1.1")},
    ],
)
def test_sampling_out_of_range(plan: Plan, change: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="need"):
        replace(plan.windows[0].sampling, **change)


def test_unknown_endpoint(plan: Plan) -> None:
    with pytest.raises(FormatError, match="endpoint 'embeddings'"):
        replace(plan.windows[0], endpoint="embeddings")
