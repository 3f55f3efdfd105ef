"""vLLM's `bench serve --save-result --save-detailed` JSON as foreign requests.

Invariant: chunk times are sums of the gaps that the file holds; they err by what its client erred.

Source: vllm-project/vllm at 0.29.0, vllm/benchmarks/serve.py (benchmark, calculate_metrics) and
vllm/benchmarks/lib/endpoint_request_func.py (async_request_openai_completions): `ttfts` and `itls`
in seconds by time.perf_counter in the event loop, one gap an event that has choices, with or
without text; `output_lens` from the server's usage, else from the tokenizer over the text.
"""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path
from typing import Any

from analysis.importing.foreign import UNREADABLE, ForeignRequest, ForeignRun
from records.digest import Digest
from records.errors import ForeignFileError

TOOL = "vLLM bench"
_ONE_A_REQUEST = ("ttfts", "itls", "output_lens", "input_lens", "errors")
_NS_PER_S = 1e9
NOTES = (
    "Chunks: events with choices, stamped by the tool's event loop, not by the kernel.",
    (
        "Output tokens: as the server counts, or where it did not, the tokenizer over the text; "
        "the file does not say which."
    ),
    "The file does not say which requests belong to the ramp: none is left out.",
)
_HOW = "vllm bench serve --save-result --save-detailed …"


def read_vllm_bench(path: Path) -> ForeignRun:
    """Read one result. ForeignFileError: not such a file, not detailed, or several results."""
    data = path.read_bytes()
    value = _result(path, data)
    lists = {name: _list(path, value, name) for name in _ONE_A_REQUEST}
    starts = value.get("start_times") or [None] * len(lists["ttfts"])
    if not isinstance(starts, list):
        raise ForeignFileError(f"{path}: start_times is no list", _HOW)
    sizes = {len(one) for one in (*lists.values(), starts)}
    if len(sizes) != 1:
        raise ForeignFileError(f"{path}: its lists differ in length: {sorted(sizes)}", _HOW)
    try:
        origin = min((start for start in starts if start is not None), default=0.0)
        requests = tuple(
            _request({name: one[i] for name, one in lists.items()}, starts[i], origin)
            for i in range(len(starts))
        )
    except UNREADABLE as error:
        raise ForeignFileError(f"{path}: a request of another form: {error}", _HOW) from error
    model = str(value.get("model_id") or "")
    return ForeignRun(TOOL, path.name, Digest.of(data), model, requests, 0, NOTES)


def _result(path: Path, data: bytes) -> dict[str, Any]:
    lines = [line for line in data.splitlines() if line.strip()]
    try:
        value = json.loads(data) if len(lines) <= 1 or lines[0].strip() == b"{" else None
    except (ValueError, RecursionError) as error:
        raise ForeignFileError(f"{path}: not JSON: {error}", _HOW) from error
    if value is None and not lines[0].lstrip().startswith(b"{"):
        raise ForeignFileError(f"{path}: not JSON, and so not what --save-result writes", _HOW)
    if value is None:
        raise ForeignFileError(
            f"{path}: {len(lines)} results, as --append-result writes them",
            "put the one that is meant into a file of its own",
        )
    if not isinstance(value, dict):
        raise ForeignFileError(f"{path}: not a JSON object", _HOW)
    return value


def _list(path: Path, value: dict[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    if not isinstance(found, list):
        raise ForeignFileError(
            f"{path}: no list {name!r}: not a detailed result of vLLM's bench",
            _HOW,
        )
    return found


def _request(one: dict[str, Any], start: float | None, origin: float) -> ForeignRequest:
    ttft, gaps, output, error = one["ttfts"], one["itls"], one["output_lens"], one["errors"]
    # A request that failed has 0 for what it did not reach, and its traceback or nothing for error.
    failed = bool(error) or (ttft == 0 and output == 0)
    times = [round(moment * _NS_PER_S) for moment in accumulate([ttft, *gaps])] if ttft else []
    return ForeignRequest(
        None if start is None else round((start - origin) * _NS_PER_S),
        tuple(times),
        None,
        None if failed else int(output),
        int(one["input_lens"]),
        (error.strip().splitlines() or ["no response"])[-1] if failed else "",
    )
