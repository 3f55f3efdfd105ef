"""What is sent in a measured window: load, prompts and sampling, with nothing left to a default.

Invariant: a value of these types says everything that decides which bytes are sent when; engines
change their defaults between versions (vLLM issue 33497), so every sampling parameter is explicit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from records.digest import Digest
from records.errors import FormatError
from records.limits import FieldError, plain_text

LOAD_KINDS = ("closed", "constant", "poisson", "burst")
PROMPT_FILES = ("jsonl", "spec-bench", "sharegpt")
PROMPT_SOURCES = ("builtin", *PROMPT_FILES, "random")
ENDPOINTS = ("completions", "chat")
# Who measures a window: the kit's own client, or a plain one, to be held against it.
CLIENTS = ("kit", "asyncio")
# Far above what changes any distribution; a number beyond it is a slip of the pen.
MAX_TEMPERATURE = 1000


@dataclass(frozen=True, slots=True)
class Load:
    """When requests are sent.

    closed: `concurrency` requests in flight, a new one as each ends. constant, poisson: open loop
    at `rate_millihertz` (requests per 1,000 s), latency counting from the scheduled time, at most
    `concurrency` connections (a request that must wait for one keeps its scheduled time). burst:
    `concurrency` requests at once every 1,000 / `rate_millihertz` seconds.
    Ends after `requests` requests, or `duration_ms` (0: no such limit; one of them is needed).
    """

    kind: str
    concurrency: int
    rate_millihertz: int = 0
    requests: int = 0
    duration_ms: int = 0
    timeout_ms: int = 120_000

    def __post_init__(self) -> None:
        if self.kind not in LOAD_KINDS:
            raise FormatError(f"load kind {self.kind!r} is none of {', '.join(LOAD_KINDS)}")
        if self.concurrency < 1:
            raise FormatError("concurrency must be at least 1")
        if (self.kind == "closed") != (self.rate_millihertz == 0) or self.rate_millihertz < 0:
            raise FormatError(
                "rate_millihertz is for constant, poisson and burst, and needed there"
            )
        if self.requests < 0 or self.duration_ms < 0 or self.requests + self.duration_ms == 0:
            raise FormatError("a window needs a budget: requests or duration_ms")
        if self.timeout_ms < 1:
            raise FormatError("timeout_ms must be at least 1")


@dataclass(frozen=True, slots=True)
class Prompts:
    """Where prompts come from. `path` and `digest` are for jsonl, spec-bench and sharegpt files.

    path: relative to the plan's file; what the prompts are is told by the digest of their file.
    random: token ids drawn uniformly from [`token_low`, `token_high`), `input_tokens` of them.
    `unique`: the request's number is woven into each prompt, so that no prefix cache can answer.
    """

    source: str
    count: int
    seed: int
    unique: bool
    path: str = ""
    input_tokens: int = 0
    token_low: int = 0
    token_high: int = 0
    digest: Digest | None = field(default=None, metadata={"since": 2})

    def __post_init__(self) -> None:
        if self.source not in PROMPT_SOURCES:
            raise FormatError(
                f"prompt source {self.source!r} is none of {', '.join(PROMPT_SOURCES)}"
            )
        if self.count < 1:
            raise FieldError("count", "prompts.count must be at least 1")
        plain_text("path", self.path)
        if (self.path != "") != (self.source in PROMPT_FILES):
            raise FormatError(f"prompts.path is for {', '.join(PROMPT_FILES)}, and needed there")
        if (self.digest is not None) != (self.path != ""):
            raise FormatError("prompts.digest goes with prompts.path, and only with it")
        if self.source == "random" and not (
            self.input_tokens > 0 and 0 <= self.token_low < self.token_high
        ):
            raise FormatError("random prompts need input_tokens, token_low and token_high")


@dataclass(frozen=True, slots=True)
class Sampling:
    """Every sampling parameter of a request; sent as they stand."""

    max_tokens: int
    min_tokens: int
    ignore_eos: bool
    temperature: Decimal
    top_p: Decimal
    top_k: int
    min_p: Decimal
    seed: int
    presence_penalty: Decimal
    frequency_penalty: Decimal
    repetition_penalty: Decimal

    def __post_init__(self) -> None:
        if self.max_tokens < 1 or not 0 <= self.min_tokens <= self.max_tokens:
            raise FormatError("need 1 <= max_tokens and 0 <= min_tokens <= max_tokens")
        if self.temperature < 0 or not 0 < self.top_p <= 1 or not 0 <= self.min_p <= 1:
            raise FormatError("need temperature >= 0, 0 < top_p <= 1, 0 <= min_p <= 1")
        if self.temperature > MAX_TEMPERATURE:
            raise FieldError("temperature", f"need temperature <= {MAX_TEMPERATURE}")
        if self.top_k < -1:
            raise FieldError("top_k", "need top_k >= -1 (-1 and 0: all tokens)")
        if self.repetition_penalty <= 0:  # an engine divides by it
            raise FieldError("repetition_penalty", "need repetition_penalty > 0")


@dataclass(frozen=True, slots=True)
class Window:
    """One measured load interval inside a boot.

    `client`: "kit"; or "asyncio", a plain client of one event loop that stamps in user space, for
    what such a client would have reported on the same boot. Its windows enter no other quantity.
    """

    id: str
    endpoint: str
    load: Load
    prompts: Prompts
    sampling: Sampling
    client: str = field(default="kit", metadata={"since": 2})

    def __post_init__(self) -> None:
        if self.client not in CLIENTS:
            raise FormatError(f"client {self.client!r} is none of {', '.join(CLIENTS)}")
        if self.client != "kit" and self.load.kind != "closed":
            raise FormatError(f"client {self.client!r} sends closed loops only")
        if self.endpoint not in ENDPOINTS:
            raise FormatError(f"endpoint {self.endpoint!r} is none of {', '.join(ENDPOINTS)}")

    @property
    def by_peer(self) -> bool:
        """Whether another client than the kit's measures it."""
        return self.client != "kit"
