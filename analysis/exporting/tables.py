"""What the exported tables hold: every column with its type, unit and meaning.

Invariant: a column keeps its name and meaning for ever; SCHEMA_VERSION is raised when one is added.
TABLES.md is made from this file by `python -m analysis.exporting.tables`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SCHEMA_VERSION = 2  # 2: requests.prompt, requests.tokens_digest
Kind = Literal["int64", "bool", "string", "list of int64"]


@dataclass(frozen=True, slots=True)
class Field:
    """One column. `missing`: when it is null; "" for never."""

    name: str
    kind: Kind
    text: str
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Export:
    """One table. `row`: what a row is; `key`: the columns that name it."""

    name: str
    row: str
    key: tuple[str, ...]
    fields: tuple[Field, ...]


_NEVER_ENDED = "the boot stopped inside the window"
_NOT_COUNTED = "the server has no such counter, or " + _NEVER_ENDED
_NOT_SAID = "the server did not say"
_RUN = Field("run", "string", "the run's id")
_SYNTHETIC = Field(
    "synthetic",
    "bool",
    "the engine was the reference server: the numbers say nothing of any engine",
)
_BOOT = Field("boot", "string", "the boot's id in its run")
_WINDOW = Field("window", "string", "the window's id in its boot")
_REQUEST = Field("request", "int64", "the request's number in its window, from 0")


def _told(name: str, text: str, missing: str = _NEVER_ENDED, kind: Kind = "int64") -> Field:
    return Field(name, kind, text, missing)


WINDOWS = Export(
    "windows",
    "one measured window of one boot, whatever became of it",
    ("run", "boot", "window"),
    (
        _RUN,
        _SYNTHETIC,
        Field("plan", "string", "the plan's id"),
        Field("arm", "string", "the arm's id"),
        Field("block", "int64", "the block, from 1", "a boot outside the plan"),
        Field("position", "int64", "the boot's place in its block, from 1", "as block"),
        _BOOT,
        Field("boot_outcome", "string", "completed, failed, interrupted or open"),
        _WINDOW,
        Field("concurrency", "int64", "requests in flight at most"),
        Field("client", "string", "who measured: kit, or a plain client to be held against it"),
        Field("usable", "bool", "by the kit, in a completed planned boot, and nothing voids it"),
        Field("void_reasons", "string", "why it must not be used, joined by '; '; empty if it may"),
        Field("server_age_ns", "int64", "from the engine's health to the window's start"),
        Field("requests", "int64", "requests recorded"),
        Field("ramp_requests", "int64", "of them sent before the load had built up"),
        Field("chunks", "int64", "chunks received"),
        Field("output_tokens", "int64", "tokens in those chunks"),
        _told("wall_ns", "the window's length"),
        _told("client_stamps", "whose clock stamped chunks: kernel or user", kind="string"),
        _told("client_workers", "worker processes of the client"),
        _told("client_planned_requests", "requests planned"),
        _told("client_completed_requests", "requests completed"),
        _told("client_failed_requests", "requests failed"),
        _told("client_cancelled_requests", "requests cancelled at the window's end"),
        _told("client_merged_chunks", "chunks whose time is an upper bound"),
        _told("client_lag_p50_ns", "from kernel stamp to reading, p50", "stamps are the user's"),
        _told("client_lag_p99_ns", "the same, p99", "as client_lag_p50_ns"),
        _told("client_lag_max_ns", "the same, greatest", "as client_lag_p50_ns"),
        _told("client_late_send_p99_ns", "sent minus scheduled, p99"),
        _told("client_busiest_cpu_ppm", "CPU over wall time of the busiest worker, millionths"),
        _told("client_cpu_ns", "CPU time of all workers"),
        _told("client_clock_step_ns", "how far the wall clock moved against the monotonic one"),
        _told("client_received_bytes", "bytes received"),
        _told("client_peak_rss_bytes", "greatest resident memory of a worker"),
        _told("server_drafts", "speculative steps drafted", _NOT_COUNTED),
        _told("server_draft_tokens", "tokens drafted", _NOT_COUNTED),
        _told("server_accepted_tokens", "drafted tokens accepted", _NOT_COUNTED),
        _told("server_generation_tokens", "tokens generated", _NOT_COUNTED),
        _told("server_prompt_tokens", "prompt tokens read", _NOT_COUNTED),
        _told("server_prefix_cache_hits_tokens", "prompt tokens found in a cache", _NOT_COUNTED),
        _told("server_preemptions", "requests preempted", _NOT_COUNTED),
        _told("host_steal_ppm", "CPU time that the host's host took, millionths"),
    ),
)

REQUESTS = Export(
    "requests",
    "one request of one window, whatever became of it",
    ("run", "boot", "window", "request"),
    (
        _RUN,
        _SYNTHETIC,
        Field("arm", "string", "the arm's id"),
        _BOOT,
        _WINDOW,
        Field("usable", "bool", "its window is usable"),
        _REQUEST,
        Field("outcome", "string", "completed, failed or cancelled"),
        Field("ramp", "bool", "sent before the load had built up: left out of latencies"),
        Field("scheduled_ns", "int64", "when it was to be sent, from the window's start"),
        Field("sent_ns", "int64", "when it was sent, from the window's start", "it never left"),
        Field("first_byte_after_ns", "int64", "first byte, from sending", "none came"),
        Field("end_after_ns", "int64", "end of the response, from sending", "there was none"),
        Field("http_status", "int64", "status of the response", "there was none"),
        Field("prompt_tokens", "int64", "as the server counts", _NOT_SAID),
        Field("completion_tokens", "int64", "as the server counts", _NOT_SAID),
        Field("cached_tokens", "int64", "prompt tokens found in a cache", _NOT_SAID),
        Field("chunks", "int64", "chunks received"),
        Field("output_tokens", "int64", "tokens in those chunks"),
        Field("first_chunk_tokens", "int64", "tokens in the first chunk", "no chunk"),
        Field("first_chunk_ns", "int64", "its receipt, from the window's start", "no chunk"),
        Field("last_chunk_ns", "int64", "receipt of the last, the same way", "no chunk"),
        Field("merged_chunks", "int64", "chunks whose time is an upper bound"),
        Field("finish_reason", "string", "as the server says", _NOT_SAID),
        Field("error", "string", "the kind of failure", "it did not fail"),
        Field(
            "accepted_tokens_by_step",
            "list of int64",
            "drafted tokens accepted in each step; in CSV with spaces between",
            _NOT_SAID,
        ),
        Field(
            "prompt",
            "int64",
            "the prompt's number in its window, from 0: requests of one number were asked the same",
            "each request of the window has a prompt of its own",
        ),
        Field(
            "tokens_digest",
            "string",
            "sha256: over the answer's token ids in decimal, joined by commas",
            "no chunk, or one that came without ids",
        ),
    ),
)

CHUNKS = Export(
    "chunks",
    "one chunk: a server-sent event with content",
    ("run", "boot", "window", "request", "chunk"),
    (
        _RUN,
        _SYNTHETIC,
        _BOOT,
        _WINDOW,
        _REQUEST,
        Field("chunk", "int64", "its number in its request, from 0"),
        Field("received_ns", "int64", "its receipt, from the window's start"),
        Field(
            "gap_ns", "int64", "from the chunk before it: the step gap", "the first of a request"
        ),
        Field("tokens", "int64", "tokens that it carried"),
        Field("merged", "bool", "a later chunk came in the same read: its time is an upper bound"),
    ),
)

EXPORTS = (WINDOWS, REQUESTS, CHUNKS)


_SQL = "SELECT boot, quantile_cont(gap_ns, 0.95) FROM 'out/chunks.parquet' GROUP BY boot"


def document() -> str:
    """TABLES.md."""
    lines = [
        "# The exported tables",
        "",
        "`kit export parquet RUN… --out DIR` writes `windows.parquet`, `requests.parquet` and",
        "`chunks.parquet`; `kit export csv` the same as CSV, missing values as empty fields.",
        "Beside them `about.json` names the runs by the digests of their seals, the licence of the",
        "data (CC-BY-4.0) and the version of this schema; so do the metadata of Parquet files.",
        "",
        "A run that is not sealed yet has none there (`seal` is null) and may still grow.",
        "",
        "Times are integer nanoseconds of a monotonic clock, from the start of their window unless",
        "said otherwise; ppm are millionths. What was not measured, or not said, is null, never 0",
        "or -1. Void windows are rows like any other: filter by `usable`. The first requests of a",
        "window belong to its ramp: for latencies filter by `ramp`, too.",
        "",
        "Parquet holds texts as the records do. In CSV a spreadsheet must not run what a server or",
        "a host said: where a text, or a part of it after `;`, begins with `=`, `+`, `-`, `@` or",
        "an apostrophe, with or without blanks before it, an apostrophe stands in front, and",
        "control and invisible characters are shown by their codes (`\\x1b`). Numbers are as they",
        "are. To undo the apostrophes take one from the beginning of each part between `;`; the",
        "codes are undone by nothing: machines read Parquet. The CSV of `kit analyze` is the same.",
        "",
        "The files take their names once all of them are on disk, `about.json` last. A directory",
        "that holds an export of the same runs in the other form may be named again.",
        "",
        f"Schema version {SCHEMA_VERSION}. Made from `analysis/exporting/tables.py` by",
        "`python -m analysis.exporting.tables > analysis/exporting/TABLES.md`; a test holds the",
        "two together.",
    ]
    for table in EXPORTS:
        key = ", ".join(f"`{name}`" for name in table.key)
        lines += ["", f"## {table.name}", "", f"A row: {table.row}. Key: {key}.", ""]
        lines += ["| column | type | meaning | null where |", "|---|---|---|---|"]
        lines += [f"| `{f.name}` | {f.kind} | {f.text} | {f.missing} |" for f in table.fields]
    lines += [
        "",
        "## In pandas, polars, DuckDB",
        "",
        "```python",
        'pandas.read_parquet("out/requests.parquet")',
        'polars.scan_parquet("out/chunks.parquet").filter(polars.col("gap_ns") > 50_000_000)',
        f'duckdb.sql("{_SQL}")',
        "```",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(document(), end="")
