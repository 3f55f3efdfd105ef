"""The counters behind /metrics, under vLLM's names.

Invariant: they are computed from the chunks that were really sent (finished responses summed, open
ones counted when asked), never from what was planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from remote.reference.schedule import Drawn

_REASONS = ("stop", "length", "abort", "error", "repetition")
_BLOCK_TOKENS = 16  # vLLM's default KV block; only whole blocks are shared.


class PrefixCache:
    """Which prompt blocks were seen: the hit rule of vLLM's automatic prefix caching."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._seen: set[tuple[int, ...]] = set()

    def reset(self) -> None:
        """Forget all blocks."""
        self._seen.clear()

    def hits(self, prompt_ids: tuple[int, ...]) -> int:
        """Tokens of this prompt found in the cache; remembers the prompt."""
        if not self._enabled:
            return 0
        hit = 0
        for end in range(_BLOCK_TOKENS, len(prompt_ids) + 1, _BLOCK_TOKENS):
            block = prompt_ids[:end]
            # The last token is always computed, since its logits are needed.
            if block in self._seen and hit == end - _BLOCK_TOKENS and end < len(prompt_ids):
                hit = end
            self._seen.add(block)
        return hit


@dataclass(slots=True)
class Tally:
    """Sums over responses, or parts of responses, that were sent."""

    generation_tokens: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0
    accepted_at: Counter[int] = field(default_factory=Counter)

    def add(self, drawn: Drawn, chunks: int) -> None:
        """Add the first `chunks` chunks of a response."""
        self.generation_tokens += sum(drawn.tokens[:chunks])
        if drawn.drafted:
            accepted = drawn.accepted[: max(0, chunks - 1)]
            self.drafts += len(accepted)
            self.draft_tokens += len(accepted) * drawn.drafted
            self.accepted_tokens += sum(accepted)
            for count in accepted:
                self.accepted_at.update(range(count))


@dataclass(slots=True)
class Counters:
    """All counters of one server; times in ns, printed in seconds."""

    sent: Tally = field(default_factory=Tally)
    prompt_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    finished: Counter[str] = field(default_factory=Counter)
    first_ns: list[int] = field(default_factory=lambda: [0, 0])
    gap_ns: list[int] = field(default_factory=lambda: [0, 0])
    per_token_ns: list[int] = field(default_factory=lambda: [0, 0])

    def prompt(self, tokens: int, hits: int) -> None:
        """A prompt of so many tokens was taken in."""
        self.prompt_tokens += tokens
        self.prefix_queries += tokens
        self.prefix_hits += hits

    def finish(self, drawn: Drawn, chunks: int, reason: str, ttft_ns: int, span_ns: int) -> None:
        """A response ended with `chunks` chunks sent, `span_ns` from the first to the last."""
        self.sent.add(drawn, chunks)
        self.finished[reason] += 1
        if not chunks:
            return
        _observe(self.first_ns, ttft_ns, 1)
        tokens = sum(drawn.tokens[:chunks])
        _observe(self.gap_ns, span_ns, chunks - 1)
        if tokens > 1:
            _observe(self.per_token_ns, span_ns // (tokens - 1), 1)

    def exposition(self, model: str, drafted: int, running: Iterable[tuple[Drawn, int]]) -> bytes:
        """The Prometheus text; `running` are the open responses and their chunks sent so far."""
        now = Tally()
        active = 0
        for drawn, chunks in running:
            now.add(drawn, chunks)
            active += 1
        label = f'engine="0",model_name="{model}"'
        lines: list[str] = []

        def family(name: str, kind: str, text: str, *samples: tuple[str, float]) -> None:
            lines.append(f"# HELP vllm:{name} {text}")
            lines.append(f"# TYPE vllm:{name} {kind}")
            lines.extend(f"vllm:{name}{more} {float(value)!r}" for more, value in samples)

        def counter(name: str, text: str, value: int) -> None:
            family(f"{name}_total", "counter", text, (f"{{{label}}}", value))

        def histogram(name: str, text: str, sum_count: list[int]) -> None:
            lines.append(f"# HELP vllm:{name} {text}")
            lines.append(f"# TYPE vllm:{name} histogram")
            lines.append(
                f'vllm:{name}_bucket{{engine="0",le="+Inf",model_name="{model}"}} {sum_count[1]}.0'
            )
            lines.append(f"vllm:{name}_count{{{label}}} {sum_count[1]}.0")
            lines.append(f"vllm:{name}_sum{{{label}}} {sum_count[0] / 1e9!r}")

        if drafted or self.sent.drafts or now.drafts:
            accepted_at = self.sent.accepted_at + now.accepted_at
            positions = max([drafted, *(position + 1 for position in accepted_at)])
            counter(
                "spec_decode_num_drafts",
                "Number of spec decoding drafts.",
                self.sent.drafts + now.drafts,
            )
            counter(
                "spec_decode_num_draft_tokens",
                "Number of draft tokens.",
                self.sent.draft_tokens + now.draft_tokens,
            )
            counter(
                "spec_decode_num_accepted_tokens",
                "Number of accepted tokens.",
                self.sent.accepted_tokens + now.accepted_tokens,
            )
            family(
                "spec_decode_num_accepted_tokens_per_pos_total",
                "counter",
                "Accepted tokens per draft position.",
                *(
                    (f'{{{label},position="{position}"}}', accepted_at[position])
                    for position in range(positions)
                ),
            )
        family(
            "num_requests_running",
            "gauge",
            "Number of requests in model execution batches.",
            (f"{{{label}}}", active),
        )
        family(
            "num_requests_waiting",
            "gauge",
            "Number of requests waiting to be processed.",
            (f"{{{label}}}", 0),
        )
        text = "Prefix cache {}, in terms of number of {} tokens."
        counter("prefix_cache_queries", text.format("queries", "queried"), self.prefix_queries)
        counter("prefix_cache_hits", text.format("hits", "cached"), self.prefix_hits)
        counter("prompt_tokens", "Number of prefill tokens processed.", self.prompt_tokens)
        counter(
            "generation_tokens",
            "Number of generation tokens processed.",
            self.sent.generation_tokens + now.generation_tokens,
        )
        family(
            "request_success_total",
            "counter",
            "Count of successfully processed requests.",
            *(
                (
                    f'{{engine="0",finished_reason="{reason}",model_name="{model}"}}',
                    self.finished[reason],
                )
                for reason in _REASONS
            ),
        )
        histogram(
            "time_to_first_token_seconds",
            "Histogram of time to first token in seconds.",
            self.first_ns,
        )
        histogram(
            "inter_token_latency_seconds",
            "Histogram of inter-token latency in seconds.",
            self.gap_ns,
        )
        histogram(
            "request_time_per_output_token_seconds",
            "Histogram of time_per_output_token_seconds per request.",
            self.per_token_ns,
        )
        return "\n".join(lines).encode() + b"\n"


def _observe(sum_count: list[int], total_ns: int, count: int) -> None:
    sum_count[0] += total_ns
    sum_count[1] += count
