"""What a claim notes of two arms that it holds against each other.

Invariant: one factor, over one window; whether the arms do differ in no other is for the audit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two arms held against each other in one declared factor, over one window.

    `effect_ms`: the difference claimed, where it is one of times; None for rates and counts.
    `latency`: the quantity that it is of (analysis.metrics.LATENCY_IDS), in ms or ms/token.
    `acceptance`: it is one of acceptance lengths.
    """

    first: str
    second: str
    factor: str
    window: str
    concurrency: int
    effect_ms: float | None
    latency: str = ""
    acceptance: bool = False
