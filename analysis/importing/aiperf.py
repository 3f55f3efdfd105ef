"""AIPerf's exports of single requests as foreign requests: raw records, else metric records.

Invariant: from raw records only server-sent events with content are chunks, as in this kit; token
counts come from ids or usage that the server sent, never from text.

Source: ai-dynamo/aiperf 0.13.0, src/aiperf/common/models/record_models.py (RawRecordInfo,
MetricRecordInfo, SSEMessage): `profile_export_raw.jsonl` (--export-level raw) with `perf_ns` of
each event by time.perf_counter_ns; `profile_export.jsonl` with metrics in ms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from analysis.importing.foreign import UNREADABLE, ForeignRequest, ForeignRun
from records.digest import Digest
from records.errors import ForeignFileError

TOOL = "AIPerf"
RAW_NAME, RECORDS_NAME = "profile_export_raw.jsonl", "profile_export.jsonl"
_MEASURED = "profiling"
_NS_PER_MS = 1e6
_CONTENT = ("content", "reasoning", "reasoning_content", "tool_calls", "refusal")
RAW_NOTES = (
    "Chunks: events with content, stamped by the tool's event loop, not by the kernel.",
    "When a request was scheduled is not taken from the file: it says so on a wall clock.",
    "The file does not say which requests belong to the ramp: none is left out.",
)
RECORD_NOTES = (
    "Chunks: as the tool counts them, from its first-token and inter-chunk times.",
    "Output tokens: as the tool counts them, by the server's usage or by a tokenizer.",
    *RAW_NOTES[1:],
)
_Record = dict[str, Any]
_HOW = "aiperf profile --export-level raw …"


def read_aiperf(path: Path) -> ForeignRun:
    """Read a file, or the better one of a directory of artifacts. ForeignFileError: neither."""
    if path.is_dir():
        found = [path / name for name in (RAW_NAME, RECORDS_NAME) if (path / name).is_file()]
        if not found:
            raise ForeignFileError(
                f"{path} holds neither {RAW_NAME} nor {RECORDS_NAME}",
                _HOW,
            )
        path = found[0]
    data = path.read_bytes()
    records = list(_records(path, data))
    if not records:
        raise ForeignFileError(f"{path} holds no record", _HOW)
    raw = all("responses" in record for record in records)
    if not raw and not all("metrics" in record for record in records):
        raise ForeignFileError(f"{path}: neither raw nor metric records of AIPerf", _HOW)
    measured = [r for r in records if r["metadata"].get("benchmark_phase") == _MEASURED]
    read: Callable[[_Record], ForeignRequest] = _of_raw if raw else _of_metrics
    try:
        requests = [read(record) for record in measured]
        model = str(measured[0].get("payload", {}).get("model", "")) if measured else ""
    except (*UNREADABLE, RecursionError) as error:
        raise ForeignFileError(f"{path}: a record of another form: {error!r}", _HOW) from error
    left_out = len(records) - len(measured)
    notes = RAW_NOTES if raw else RECORD_NOTES
    return ForeignRun(TOOL, path.name, Digest.of(data), model, _placed(requests), left_out, notes)


def _records(path: Path, data: bytes) -> Iterator[_Record]:
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ForeignFileError(f"{path}:{number}: not JSON: {error}", _HOW) from error
        if not isinstance(record, dict) or not isinstance(record.get("metadata"), dict):
            raise ForeignFileError(f"{path}:{number}: not a record of AIPerf: no metadata", _HOW)
        yield record


def _placed(requests: list[ForeignRequest]) -> tuple[ForeignRequest, ...]:
    """In order of sending, times from the first, where they are known."""
    sent = [r.sent_ns for r in requests if r.sent_ns is not None]
    if len(sent) < len(requests):
        return tuple(requests)
    origin = min(sent, default=0)
    placed = [
        ForeignRequest(
            (r.sent_ns or 0) - origin, r.chunk_ns, r.chunk_tokens, r.output_tokens,
            r.prompt_tokens, r.error,
        )
        for r in requests
    ]  # fmt: skip
    return tuple(sorted(placed, key=lambda r: r.sent_ns or 0))


def _of_raw(record: _Record) -> ForeignRequest:
    start = int(record["start_perf_ns"])
    times, counts, usage = [], [], _Usage()
    for response in record["responses"]:
        for event in _events(response):
            before = usage.output
            usage.see(event)
            if _has_content(event):
                times.append(int(response["perf_ns"]) - start)
                counts.append(_tokens(event, before, usage.output))
    tokens = tuple(count for count in counts if count is not None)
    known = len(tokens) == len(counts)
    return ForeignRequest(
        start,
        tuple(times),
        tokens if known else None,
        usage.output if usage.output is not None else sum(tokens) if known and tokens else None,
        usage.prompt,
        _error(record),
    )


class _Usage:
    """Tokens as the server counted them so far."""

    def __init__(self) -> None:
        self.output: int | None = None
        self.prompt: int | None = None

    def see(self, event: _Record) -> None:
        usage = event.get("usage")
        if isinstance(usage, dict):
            self.output = usage.get("completion_tokens", self.output)
            self.prompt = usage.get("prompt_tokens", self.prompt)


def _events(response: _Record) -> Iterator[_Record]:
    for packet in response.get("packets", ()):
        if packet["name"] == "data" and packet["value"] != "[DONE]":
            value = json.loads(packet["value"])
            if isinstance(value, dict):
                yield value


def _has_content(event: _Record) -> bool:
    for choice in event.get("choices") or ():
        delta = choice.get("delta") or {}
        if choice.get("text") or choice.get("token_ids") or any(map(delta.get, _CONTENT)):
            return True
    return False


def _tokens(event: _Record, before: int | None, after: int | None) -> int | None:
    """Of one chunk: its ids, or what its own usage counts more than the one before."""
    ids = [choice.get("token_ids") for choice in event["choices"]]
    if all(isinstance(one, list) for one in ids):
        return sum(len(one) for one in ids)
    if isinstance(event.get("usage"), dict) and after is not None:
        return after - (before or 0)
    return None


def _of_metrics(record: _Record) -> ForeignRequest:
    metrics = {name: metric["value"] for name, metric in record["metrics"].items()}
    first = metrics.get("time_to_first_token")
    gaps = metrics.get("inter_chunk_latency", [])
    times = accumulate([first, *gaps]) if first is not None else ()
    return ForeignRequest(
        None,
        tuple(round(ms * _NS_PER_MS) for ms in times),
        None,
        _whole(metrics.get("output_sequence_length")),
        _whole(metrics.get("input_sequence_length")),
        _error(record),
    )


def _error(record: _Record) -> str:
    error = record.get("error")
    if error:
        told = error if isinstance(error, dict) else {}
        return str(told.get("message") or told.get("type") or "failed")
    return "cancelled" if record["metadata"].get("was_cancelled") else ""


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
