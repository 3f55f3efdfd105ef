"""The JSON body of each request, from prompts, sampling, endpoint and model name.

Invariant: body(i) is a function of these and i alone; every sampling parameter stands in it, with
decimals written digit for digit as the plan has them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path

from records.digest import Digest
from records.errors import BindingError, PlanError
from records.load import Prompts, Sampling, Window
from records.prompt_file import Prompt, read_prompts
from remote.prompts.builtin import builtin_prompts

# Token ids that tell requests apart count to this many at least.
_UNIQUE_REQUESTS = 2**32


class PromptSource:
    """Bodies of `prompts`, cycled: request i sends prompt i modulo their number.

    `unique` puts the request's number in front of a text, or into the first token ids, so that no
    two requests share a prefix beyond the server's own template.
    """

    def __init__(
        self, prompts: Sequence[Prompt], unique: tuple[int, int] | bool, frame: tuple[bytes, bytes]
    ) -> None:
        self._head, self._tail = frame
        self._unique = unique is not False
        self._low, self._base = (
            (unique[0], unique[1] - unique[0]) if isinstance(unique, tuple) else (0, 0)
        )
        self._digits = _digits(self._base) if isinstance(unique, tuple) else 0
        self._prompts = [self._encoded(prompt) for prompt in prompts]

    def body(self, index: int) -> bytes:
        """The body of request `index`."""
        opening, rest = self._prompts[index % len(self._prompts)]
        if not self._unique:
            return self._head + opening + rest + self._tail
        if opening == b'"':
            return b'%b"Request %d. %b%b' % (self._head, index, rest, self._tail)
        ids, number = [], index
        for _ in range(self._digits):
            number, digit = divmod(number, self._base)
            ids.append(b"%d" % (self._low + digit))
        return self._head + b"[" + b",".join(ids) + rest + self._tail

    def _encoded(self, prompt: Prompt) -> tuple[bytes, bytes]:
        """The JSON of a prompt, cut where the request's number goes in."""
        if isinstance(prompt, str):
            return b'"', json.dumps(prompt).encode()[1:]
        if not self._unique:
            return b"[", b"%b]" % b",".join(b"%d" % i for i in prompt)
        if len(prompt) < self._digits:
            raise PlanError(
                f"a prompt of {len(prompt)} token ids is too short to be unique",
                remedy=f"use at least {self._digits}",
            )
        return b"[", b"".join(b",%d" % i for i in prompt[self._digits :]) + b"]"


def request_source(window: Window, model: str, files: Path = Path()) -> PromptSource:
    """The bodies of a window's requests. PlanError where the prompts do not fit the endpoint.

    `files`: the directory of prompt files, each named by the hex digits of its digest. BindingError
    where a file there is another.
    """
    asked = window.prompts
    prompts = _choose(asked, files)
    ids = [p for p in prompts if not isinstance(p, str)]
    if ids and window.endpoint == "chat":
        raise PlanError("token ids are prompts for the completions endpoint, not for chat")
    unique: tuple[int, int] | bool = asked.unique
    if asked.unique and ids:
        if asked.source != "random":
            raise PlanError("unique prompts of token ids need source random, which has a range")
        unique = (asked.token_low, asked.token_high)
    return PromptSource(prompts, unique, frame(window.endpoint, window.sampling, model))


def frame(endpoint: str, sampling: Sampling, model: str) -> tuple[bytes, bytes]:
    """The body before and after the JSON of the prompt."""
    fields = {
        "max_tokens": sampling.max_tokens,
        "min_tokens": sampling.min_tokens,
        "ignore_eos": sampling.ignore_eos,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "seed": sampling.seed,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "n": 1,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_token_ids": True,
    }
    rest = "".join(f",{json.dumps(name)}:{_number(value)}" for name, value in fields.items())
    head = f'{{"model":{json.dumps(model)},'
    if endpoint == "chat":
        return (head + '"messages":[{"role":"user","content":').encode(), f"}}]{rest}}}".encode()
    return (head + '"prompt":').encode(), f"{rest}}}".encode()


def _number(value: object) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")  # 0.70 stays 0.70; never an exponent, never a float
    return json.dumps(value, separators=(",", ":"))


def _choose(asked: Prompts, files: Path) -> Sequence[Prompt]:
    draw = random.Random(asked.seed).random  # noqa: S311 - reproducible, not secret
    if asked.source == "random":
        span = asked.token_high - asked.token_low
        return [
            tuple(asked.token_low + int(draw() * span) for _ in range(asked.input_tokens))
            for _ in range(asked.count)
        ]
    found: list[Prompt] = list(builtin_prompts())
    if asked.digest is not None:
        found = read_prompts(asked.source, _read(asked.digest, files), Path(asked.path).name)
    if len(found) < asked.count:
        raise PlanError(
            f"{asked.count} prompts asked for, {asked.source} has {len(found)}",
            remedy=(
                f"set prompts.count to {len(found)} or less"
                if found
                else f"name a file that holds prompts: {asked.path} has none"
            ),
        )
    return _shuffled(found, draw)[: asked.count]


def _read(digest: Digest, files: Path) -> bytes:
    path = files / digest.hex
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PlanError(
            f"prompts: {error}", remedy=f"put the file of this digest there: {digest}"
        ) from error
    if Digest.of(data) != digest:
        raise BindingError(
            f"prompts {path}: got {Digest.of(data)}, want {digest}", remedy=f"rm {path}"
        )
    return data


def _shuffled(items: list[Prompt], draw: Callable[[], float]) -> list[Prompt]:
    """Fisher-Yates over `random()` alone, whose stream Python guarantees across versions."""
    for last in range(len(items) - 1, 0, -1):
        other = int(draw() * (last + 1))
        items[last], items[other] = items[other], items[last]
    return items


def _digits(base: int) -> int:
    digits, reach = 0, 1
    while reach < _UNIQUE_REQUESTS and base > 1:
        digits, reach = digits + 1, reach * base
    if reach < _UNIQUE_REQUESTS:
        raise PlanError("unique random prompts need token_high - token_low of at least 2")
    return digits
