"""What the fixed prompts of a window were answered with, by the digests of the answers' tokens.

Invariant: the same requests give the same value, in whatever batches they come. Only completed
requests are looked at, and only where nothing but the engine's arithmetic may make two answers to
one prompt differ: the prompts are the same in every window, and each token is the likeliest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from analysis.requests import RequestColumns
from records.load import Window

_PROMPT_BYTES, _DIGEST_BYTES = 8, 32
_PAIR_BYTES = _PROMPT_BYTES + _DIGEST_BYTES


@dataclass(frozen=True, slots=True)
class Answers:
    """`pairs`: each different (prompt, digest of its answer), 8 and 32 bytes, in ascending order.

    One value for all, so that boots that answer alike can hold it together
    (analysis/claiming/sharing.py). `told`: every completed request came with its token ids.
    """

    pairs: bytes = b""
    told: bool = True

    @property
    def distinct(self) -> int:
        """How many different answers: as many as prompts where each was always answered alike."""
        return len(self.pairs) // _PAIR_BYTES

    @property
    def prompts(self) -> int:
        """How many different prompts were answered."""
        return len(self.by_prompt())

    def by_prompt(self) -> dict[bytes, set[bytes]]:
        """Prompt -> its different answers."""
        found: dict[bytes, set[bytes]] = {}
        for pair in self.each():
            found.setdefault(pair[:_PROMPT_BYTES], set()).add(pair[_PROMPT_BYTES:])
        return found

    def each(self) -> Iterator[bytes]:
        """The pairs, one by one."""
        for start in range(0, len(self.pairs), _PAIR_BYTES):
            yield self.pairs[start : start + _PAIR_BYTES]


def why_untold(window: Window) -> str:
    """Why answers in this window may differ without a cause in the engine; "" where they may not.

    Temperature 0 is greedy sampling: the other parameters then change no choice between boots.
    """
    if window.prompts.unique:
        return "every request has a prompt of its own"
    if window.sampling.temperature != 0:
        return "tokens are drawn at random"
    return ""


def answers_of(requests: RequestColumns, prompts: int) -> Answers:
    """The answers in a batch of a window that cycles so many prompts.

    Request i sends prompt i modulo their number (remote/prompts/source.py).
    """
    done = requests.completed
    numbers = (requests.scalars["index"][done] % prompts).tolist()
    digests = [
        digest for digest, kept in zip(requests.tokens_digest, done.tolist(), strict=True) if kept
    ]
    pairs = {
        number.to_bytes(_PROMPT_BYTES, "big") + digest
        for number, digest in zip(numbers, digests, strict=True)
        if digest
    }
    return Answers(b"".join(sorted(pairs)), all(digests))


def together(parts: Iterable[Answers]) -> Answers:
    """The answers of several batches, windows or boots that were asked the same prompts."""
    pairs: set[bytes] = set()
    told = True
    for part in parts:
        pairs.update(part.each())
        told = told and part.told
    return Answers(b"".join(sorted(pairs)), told)


@dataclass(frozen=True, slots=True)
class Agreement:
    """`same`: of the prompts that two sides answered (`compared`), those always answered alike."""

    same: int
    compared: int

    @property
    def other(self) -> int:
        """Prompts that were answered with other tokens at least once."""
        return self.compared - self.same


def agreement(one: Answers | None, two: Answers | None) -> Agreement | None:
    """How far two sides gave the very same answers; None where that cannot be told."""
    if one is None or two is None or not (one.told and two.told):
        return None
    first, second = one.by_prompt(), two.by_prompt()
    both = first.keys() & second.keys()
    same = sum(len(first[prompt] | second[prompt]) == 1 for prompt in both)
    return Agreement(same, len(both))
