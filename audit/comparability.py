"""Whether two arms differ in their declared factor alone: by the plan, and by what the engine did.

Invariant: a decision may differ only where the factor compared is that decision. What the engine
did not log is a state like any other, so a logged backend and an unlogged one are not the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
# Factor of a plan -> the decisions that are that factor. The CUDA-graph mode is not among those of
# `kv` or of a backend, nor the model runner among those of `speculation`: the engine does change
# them along (FlashInfer has no full graphs with speculation, a draft model falls back to the V1
# runner), and then a difference measured is not that of the factor. Both can be pinned.
_FACTORS: Mapping[str, tuple[str, ...]] = {
    "speculation": (
        "spec_method",
        "spec_tokens",
        "draft.backend",
        "draft.flash_attention_version",
        "draft.kv_cache_dtype",
    ),
    "kv": ("target.kv_cache_dtype", "draft.kv_cache_dtype"),
    "graphs": ("cudagraph_effective", "enforce_eager", "compile_cache.state"),
    "target_backend": ("target.backend", "target.flash_attention_version"),
    "draft_backend": ("draft.backend", "draft.flash_attention_version"),
    "cache": ("compile_cache.state",),
    "version": ("version",),
}


def decision(facts: Mapping[str, Any], name: str) -> str:
    """One decision, by its dotted name; "absent" where the record has none."""
    value: Any = facts
    for key in name.split("."):
        value = value.get(key, "absent") if isinstance(value, Mapping) else "absent"
    return str(value)


def decided(boots: Iterable[Mapping[str, Any]], name: str) -> str:
    """What boots decided: the one answer, or all of them, joined."""
    return " / ".join(sorted({decision(facts, name) for facts in boots})) or "absent"


def confounds(
    factor: str, first: list[Mapping[str, Any]], second: list[Mapping[str, Any]]
) -> list[tuple[str, str, str]]:
    """The decisions that differ between two arms without being `factor`: name, first, second."""
    own = _FACTORS.get(factor, ())
    found = []
    for name in DECISIONS:
        one, two = decided(first, name), decided(second, name)
        if one != two and name not in own:
            found.append((name, one, two))
    return found
