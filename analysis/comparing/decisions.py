"""What an engine decided, by dotted names over the facts of its log, and where boots differ in it.

Invariant: what the engine did not log is a state like any other, so a logged backend and an
unlogged one are not the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

# The decisions that change what is run: kernels, their numbers, graphs, caches.
DECISIONS: tuple[str, ...] = (
    "target.backend",
    "target.flash_attention_version",
    "target.kv_cache_dtype",
    "draft.backend",
    "draft.flash_attention_version",
    "draft.kv_cache_dtype",
    "spec_method",
    "spec_tokens",
    "cudagraph_effective",
    "enforce_eager",
    "compile_cache.state",
    "model_runner",
    "version",
)
_SEVERAL = " / "


def decision(facts: Mapping[str, Any], name: str) -> str:
    """One decision, by its dotted name; "absent" where the record has none."""
    value: Any = facts
    for key in name.split("."):
        value = value.get(key, "absent") if isinstance(value, Mapping) else "absent"
    return str(value)


def decided(boots: Iterable[Mapping[str, Any]], name: str) -> str:
    """What boots decided: the one answer, or all of them, joined."""
    return _SEVERAL.join(sorted({decision(facts, name) for facts in boots})) or "absent"


def unlike(boots: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The decisions in which boots that should be replicates differ: name, all answers."""
    for name in DECISIONS:
        found = decided(boots, name)
        if _SEVERAL in found:
            yield name, found


def apart(
    first: list[Mapping[str, Any]], second: list[Mapping[str, Any]]
) -> Iterator[tuple[str, str, str]]:
    """The decisions in which two sets of boots differ: name, first, second."""
    for name in DECISIONS:
        one, two = decided(first, name), decided(second, name)
        if one != two:
            yield name, one, two
