"""The few counters of a /metrics page that records state, read again from the page itself.

Invariant: an own reader, apart from the harness's (remote/engine/metrics.py), so that one mistake
does not stand on both sides; sums over label sets; None where the page has no such family.
Source: prometheus.io/docs/instrumenting/exposition_formats, text format 0.0.4.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path

from records.errors import FormatError

FAMILIES = {
    "drafts": "vllm:spec_decode_num_drafts_total",
    "draft_tokens": "vllm:spec_decode_num_draft_tokens_total",
    "accepted_tokens": "vllm:spec_decode_num_accepted_tokens_total",
    "generation_tokens": "vllm:generation_tokens_total",
    "prompt_tokens": "vllm:prompt_tokens_total",
    "prefix_cache_hits": "vllm:prefix_cache_hits_total",
    "preemptions": "vllm:num_preemptions_total",
}
# How long the server says that its requests took in all, from arrival to the last token and to the
# first, seconds (vllm/v1/metrics/stats.py: both end in the server, before anything is sent).
TIMES = {
    "requests": "vllm:e2e_request_latency_seconds_count",
    "whole_s": "vllm:e2e_request_latency_seconds_sum",
    "first_tokens": "vllm:time_to_first_token_seconds_count",
    "first_token_s": "vllm:time_to_first_token_seconds_sum",
}
# Pages are of some 100 kB; what unpacks to more is not one.
_MOST_BYTES = 1 << 26
# No server has counted more, nor served requests for longer in all, in seconds (as floats of more
# lose microseconds).
_MOST, _MOST_S = 2**63 - 1, 1e12
_FIELDS = {family: name for name, family in FAMILIES.items()}
_SAMPLE = re.compile(
    r"(?P<name>vllm:[a-z0-9_]+)(?P<labels>\{.*\})?[ \t]+(?P<value>\S+)(?:[ \t]+-?\d+)?\s*"
)


def read_times(path: Path, only: Collection[str] = TIMES.keys()) -> dict[str, float]:
    """Key of TIMES -> value, where the page has the family. FormatError as `read_page`.

    `only`: these keys and no others, so that what the rest of the page holds does not matter.
    """
    found: dict[str, float] = {}
    wanted = {family: name for name, family in TIMES.items() if name in only}
    for name, value, where in _samples(path, wanted):
        found[name] = found.get(name, 0.0) + _seconds(value, where)
    return found


def _samples(path: Path, names: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Of the families in `names`, each series once: the name, the value's text, the place."""
    seen: set[str] = set()
    for number, line in enumerate(_lines(path), 1):
        match = _SAMPLE.fullmatch(line)
        name = names.get(match["name"]) if match else None
        if match and name:
            where, series = f"{path.name}:{number}", match["name"] + (match["labels"] or "")
            if series in seen:
                raise FormatError(f"{where}: {match['name']} with the same labels twice")
            seen.add(series)
            yield name, match["value"], where


def _lines(path: Path) -> list[str]:
    try:
        with gzip.open(path, "rb") as page:
            data = page.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise FormatError(f"{path.name}: more than {_MOST_BYTES} bytes unpacked: no page")
        return data.decode("utf-8").split("\n")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise FormatError(f"{path.name}: cannot be unpacked: {error}") from error


def read_page(path: Path) -> dict[str, int]:
    """Field of records.schema.Counters -> value. FormatError for a page that is not one."""
    found: dict[str, int] = {}
    for field, value, where in _samples(path, _FIELDS):
        found[field] = found.get(field, 0) + _integer(value, where)
    if "generation_tokens" not in found:
        raise FormatError(f"{path.name}: no {FAMILIES['generation_tokens']}: not a page of vLLM")
    return found


def _integer(text: str, where: str) -> int:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise FormatError(f"{where}: not a number: {text[:40]!r}") from None
    if (
        value.is_nan()
        or "_" in text
        or not 0 <= value <= _MOST
        or value != value.to_integral_value()
    ):
        raise FormatError(f"{where}: not a count: {text[:40]!r}")
    return int(value)


def _seconds(text: str, where: str) -> float:
    """A sum of times, or how many there are of them."""
    try:
        value = float(text)
    except ValueError:
        raise FormatError(f"{where}: not a number: {text[:40]!r}") from None
    if "_" in text or not 0 <= value <= _MOST_S:
        raise FormatError(f"{where}: not a time, nor a count of times: {text[:40]!r}")
    return value
