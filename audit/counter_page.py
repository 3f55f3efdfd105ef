"""The few counters of a /metrics page that records state, read again from the page itself.

Invariant: an own reader, apart from the harness's (remote/engine/metrics.py), so that one mistake
does not stand on both sides; sums over label sets; None where the page has no such family.
Source: prometheus.io/docs/instrumenting/exposition_formats, text format 0.0.4.
"""

from __future__ import annotations

import gzip
import re
import zlib
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
_FIELDS = {family: name for name, family in FAMILIES.items()}
_SAMPLE = re.compile(r"(?P<name>vllm:[a-z0-9_]+)(?:\{.*\})?[ \t]+(?P<value>\S+)(?:[ \t]+-?\d+)?\s*")


def read_times(path: Path) -> dict[str, float]:
    """Key of TIMES -> value, where the page has the family. FormatError as `read_page`."""
    names = {family: name for name, family in TIMES.items()}
    found: dict[str, float] = {}
    for line in _lines(path):
        match = _SAMPLE.fullmatch(line)
        name = names.get(match["name"]) if match else None
        if match and name:
            try:
                found[name] = found.get(name, 0.0) + float(match["value"])
            except ValueError as error:
                raise FormatError(f"{path.name}: {name}: {error}") from error
    return found


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
    for number, line in enumerate(_lines(path), 1):
        match = _SAMPLE.fullmatch(line)
        field = _FIELDS.get(match["name"]) if match else None
        if match and field:
            found[field] = found.get(field, 0) + _integer(match["value"], f"{path.name}:{number}")
    if "generation_tokens" not in found:
        raise FormatError(f"{path.name}: no {FAMILIES['generation_tokens']}: not a page of vLLM")
    return found


def _integer(text: str, where: str) -> int:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise FormatError(f"{where}: not a number: {text!r}") from None
    if not value.is_finite() or value != value.to_integral_value():
        raise FormatError(f"{where}: not a whole number: {text!r}")
    return int(value)
