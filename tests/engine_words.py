"""What an engine would have said of a made-up run: pages of its /metrics, and what it logged."""

from __future__ import annotations

from typing import Any

from records import schema
from records.decode import to_object
from records.measurement import Request
from remote.engine.log import parse

MS = 1_000_000
_LOG_NONE = (
    "INFO 11-30 10:00:00 [core.py:1] Initializing a V1 LLM engine (v0.29.0) with config: "
    "speculative_config=None, kv_cache_dtype=auto, enforce_eager=True\n"
    "INFO 11-30 10:00:01 [cuda.py:1] Using FLASH_ATTN attention backend out of potential "
    "backends: ['FLASH_ATTN', 'FLASHINFER']\n"
)
_LOG_DRAFT = _LOG_NONE.replace(
    "speculative_config=None",
    "speculative_config=SpeculativeConfig(method='draft_model', model='d', num_spec_tokens=4)",
)


def metrics_page(counters: schema.Counters) -> bytes:
    """A /metrics page after these counts on top of 1,000 of each; -1: no such family."""
    families = {
        "vllm:spec_decode_num_drafts_total": counters.drafts,
        "vllm:spec_decode_num_draft_tokens_total": counters.draft_tokens,
        "vllm:spec_decode_num_accepted_tokens_total": counters.accepted_tokens,
        "vllm:generation_tokens_total": counters.generation_tokens,
        "vllm:prompt_tokens_total": counters.prompt_tokens,
        "vllm:prefix_cache_hits_total": counters.prefix_cache_hits,
        "vllm:num_preemptions_total": counters.preemptions,
    }
    lines = [
        f'# TYPE {name} counter\n{name}{{engine="0",model_name="m"}} {1000 + value}.0'
        for name, value in families.items()
        if value >= 0
    ]
    return ("\n".join(lines) + "\n").encode()


def times_page(requests: list[Request], more: int = 0) -> bytes:
    """The histograms of a server's own times after these requests, on top of 10 of 1 s each.

    `more`: requests of others.
    """
    first = [r.chunk_ns[0] - MS for r in requests]
    whole = [r.end_ns - 2 * MS for r in requests]
    span = [(r.chunk_ns[-1] - r.chunk_ns[0]) / (sum(r.chunk_tokens) - 1) for r in requests]
    families = {
        "vllm:time_to_first_token_seconds": first,
        "vllm:e2e_request_latency_seconds": whole,
        "vllm:request_time_per_output_token_seconds": span,
    }
    labels = 'engine="0",model_name="m"'
    lines = [
        f"# TYPE {name} histogram\n"
        f'{name}_bucket{{{labels},le="+Inf"}} {10 + len(values) + more}.0\n'
        f"{name}_count{{{labels}}} {10 + len(values) + more}.0\n"
        f"{name}_sum{{{labels}}} {10 + sum(values) / 1e9!r}"
        for name, values in families.items()
    ]
    return ("\n".join(lines) + "\n").encode()


def decisions(with_draft: bool) -> dict[str, Any]:
    """Facts of `engine.decided` as the log reader gives them."""
    return to_object(parse(_LOG_DRAFT if with_draft else _LOG_NONE))  # type: ignore[no-any-return]
