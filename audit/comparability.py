"""Whether two arms differ in their declared factor alone: by the plan, and by what the engine did.

Invariant: a decision may differ only where the factor compared is that decision. What the engine
did not log is a state like any other, so a logged backend and an unlogged one are not the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.comparing.decisions import apart

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
    "backend": (
        "target.backend",
        "target.flash_attention_version",
        "draft.backend",
        "draft.flash_attention_version",
    ),
    "target_backend": ("target.backend", "target.flash_attention_version"),
    "draft_backend": ("draft.backend", "draft.flash_attention_version"),
    "cache": ("compile_cache.state",),
    "version": ("version",),
}


def confounds(
    factor: str, first: list[Mapping[str, Any]], second: list[Mapping[str, Any]]
) -> list[tuple[str, str, str]]:
    """The decisions that differ between two arms without being `factor`: name, first, second."""
    own = _FACTORS.get(factor, ())
    return [found for found in apart(first, second) if found[0] not in own]
