"""When each chunk is due and how many tokens it carries: the known schedule.

Invariant: a schedule, a key and a token count give the same chunks in every process. Everything is
made from random.random() after seeding with text, the only sequence that Python promises to keep
across its versions ("Notes on Reproducibility" in the documentation of `random`).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from records.errors import ScheduleError

_UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"(\d+)(?:\.(\d+))?(ns|us|ms|s)")
_DELAY_ARGUMENTS = {
    "constant": (1, 1),
    "uniform": (2, 2),
    "normal": (2, 4),
    "exponential": (1, 1),
    "lockstep": (1, 1),
    "cycle": (1, 4096),
}
_GRAMMAR = (
    "constant:20ms, uniform:10ms:30ms, normal:MEAN:SD[:MIN[:MAX]], exponential:20ms, "
    "lockstep:20ms or cycle:10ms:20ms"
)


@dataclass(frozen=True, slots=True)
class Delay:
    """A distribution of waiting times; `values_ns` are its parameters, ordered as written."""

    kind: str
    values_ns: tuple[int, ...]

    @property
    def align_ns(self) -> int:
        """The period whose multiples of CLOCK_MONOTONIC every stream shares; 0 where none is."""
        return self.values_ns[0] if self.kind == "lockstep" else 0


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens per chunk: `counts` repeated, or (k > 0) one from the prefill and then 1 to k + 1."""

    counts: tuple[int, ...]
    k: int = 0
    mean: float = 0.0

    @property
    def drafted(self) -> int:
        """Draft tokens a step: 0 means no speculation."""
        return self.k or max(self.counts) - 1


@dataclass(frozen=True, slots=True)
class Schedule:
    """Time to the first chunk, time between chunks, tokens per chunk and the seed of all draws."""

    ttft: Delay
    gap: Delay
    tokens: Tokens
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Drawn:
    """The chunks of one response: waits (the first from the request), tokens, accepted drafts.

    `accepted[i]` belongs to the step that made chunk i + 1: the first chunk is the prefill's. The
    last chunk may carry fewer than accepted + 1 tokens, cut by max_tokens, as vLLM does it.
    """

    waits_ns: Sequence[int]
    tokens: Sequence[int]
    accepted: Sequence[int]
    drafted: int
    align_ns: int
    text_start: int

    def head(self, chunks: int) -> Drawn:
        """The same response ended after `chunks` chunks (at least one)."""
        n = max(1, chunks)
        return replace(
            self,
            waits_ns=self.waits_ns[:n],
            tokens=self.tokens[:n],
            accepted=self.accepted[: n - 1],
        )

    def aligned(self, start_ns: int) -> Drawn:
        """The same response, its first chunk moved to the next beat all lock-step streams share."""
        if not self.align_ns:
            return self
        first_ns = self.waits_ns[0] + -(start_ns + self.waits_ns[0]) % self.align_ns
        return replace(self, waits_ns=[first_ns, *self.waits_ns[1:]])


def parse_duration_ns(text: str | int) -> int:
    """Nanoseconds from `20ms`, `1.5s`, `250us`, `7ns`, or an integer taken as ns."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    match = _DURATION.fullmatch(str(text))
    if match is None:
        raise ScheduleError(f"{text!r} is not a duration", "write a unit: 20ms, 1.5s, 250us, 7ns")
    whole, part, unit = match.groups()
    scale = _UNITS_NS[unit]
    return int(whole) * scale + (int(part) * scale // 10 ** len(part) if part else 0)


def parse_delay(text: str | int | Sequence[int | str]) -> Delay:
    """A Delay from its text; a bare duration is constant, a JSON list a cycle."""
    if isinstance(text, int):
        return Delay("constant", (parse_duration_ns(text),))
    if not isinstance(text, str):
        text = ":".join(["cycle", *(f"{v}ns" if isinstance(v, int) else str(v) for v in text)])
    kind, *arguments = text.split(":")
    if not arguments:
        return Delay("constant", (parse_duration_ns(kind),))
    low, high = _DELAY_ARGUMENTS.get(kind, (0, 0))
    if not low <= len(arguments) <= high:
        raise ScheduleError(f"{text!r} is not a delay", f"use {_GRAMMAR}")
    values = tuple(parse_duration_ns(argument) for argument in arguments)
    if kind == "lockstep" and values[0] == 0:
        raise ScheduleError("a lock-step of no length", "use lockstep:20ms")
    if kind == "uniform" and values[0] > values[1]:
        raise ScheduleError(f"{text!r}: the lower end lies above the upper", f"use {_GRAMMAR}")
    return Delay(kind, values)


def parse_tokens(text: str | int | Sequence[int]) -> Tokens:
    """Tokens from `1`, `cycle:1,3,1` (in JSON a list), or `accept:K:MEAN`."""
    remedy = "use 1, cycle:1,3,1 or accept:4:3.2 (k = 4 drafts, mean 3.2 tokens a step)"
    try:
        if isinstance(text, int):
            counts: tuple[int, ...] = (text,)
        elif not isinstance(text, str):
            counts = tuple(int(value) for value in text)
        elif text.startswith("accept:"):
            _, k_text, mean_text = text.split(":")
            k, mean = int(k_text), float(mean_text)
            if not (1 <= k <= 64 and 1.0 <= mean <= k + 1.0):
                raise ScheduleError(f"{text!r}: the mean lies outside 1 to k + 1", remedy)
            return Tokens((1,), k, mean)
        else:
            counts = tuple(int(value) for value in text.removeprefix("cycle:").split(","))
    except (ValueError, TypeError) as error:
        raise ScheduleError(f"{text!r} is not a token rule", remedy) from error
    if not counts or min(counts) < 1:
        raise ScheduleError(f"{text!r}: a chunk carries at least one token", remedy)
    return Tokens(counts)


def draw(schedule: Schedule, key: str, output_tokens: int) -> Drawn:
    """The chunks of the response named `key`, `output_tokens` (at least 1) in all."""
    rng = random.Random(f"{schedule.seed}:{key}")  # noqa: S311 - reproducible, not secret
    tokens, accepted = _draw_tokens(schedule.tokens, rng, output_tokens)
    first = _draw_waits(schedule.ttft, rng, 1)
    rest = _draw_waits(schedule.gap, rng, len(tokens) - 1)
    start = int(rng.random() * 65_536)
    drafted, align = schedule.tokens.drafted, schedule.gap.align_ns
    return Drawn(first + rest, tokens, accepted, drafted, align, start)


@lru_cache(maxsize=256)
def acceptance_probability(k: int, mean: float) -> float:
    """p with 1 + p + ... + p^k = mean: each draft accepted with p while all before it were.

    The chain of Leviathan et al. 2023 (arXiv:2211.17192, eq. 1), solved by bisection.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if 1.0 + sum(middle**i for i in range(1, k + 1)) < mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _draw_tokens(rule: Tokens, rng: random.Random, total: int) -> tuple[list[int], list[int]]:
    tokens: list[int] = []
    accepted: list[int] = []
    p = acceptance_probability(rule.k, rule.mean) if rule.k else 0.0
    left = total
    while left > 0:
        count = rule.counts[len(tokens) % len(rule.counts)]
        if rule.k and tokens:
            count = 1
            while count <= rule.k and rng.random() < p:
                count += 1
        if tokens:
            accepted.append(count - 1)
        tokens.append(min(count, left))
        left -= count
    return tokens, accepted


def _draw_waits(delay: Delay, rng: random.Random, n: int) -> list[int]:
    values = delay.values_ns
    if delay.kind in ("constant", "lockstep"):
        return [values[0]] * n
    if delay.kind == "cycle":
        return [values[i % len(values)] for i in range(n)]
    if delay.kind == "uniform":
        return [values[0] + int(rng.random() * (values[1] - values[0] + 1)) for _ in range(n)]
    if delay.kind == "exponential":
        return [int(-math.log(1.0 - rng.random()) * values[0]) for _ in range(n)]
    low = values[2] if len(values) > 2 else 0
    high = values[3] if len(values) > 3 else 1 << 62
    return [min(max(int(values[0] + values[1] * _normal(rng)), low), high) for _ in range(n)]


def _normal(rng: random.Random) -> float:
    """A standard normal draw by Box and Muller 1958 (doi:10.1214/aoms/1177706645)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - rng.random()))
    return radius * math.cos(2.0 * math.pi * rng.random())
