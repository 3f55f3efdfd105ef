"""What the server says that a window's requests took, beside what the client saw of the same ones.

Invariant: a mean stands only where the server counted exactly the window's requests and all of them
completed; a page is read only if it is, to the byte, the one that its journal names. What a server
wrote there that is no page, or no number, leaves without a mean what hangs on it, and nothing else.

The server's clock, as vLLM 0.29.0 defines it:

- It starts with `arrival_time`, stamped in the API server's process when rendering of the prompt
  begins: after the request line was read and its JSON parsed, before tokenisation. Source: vLLM,
  docs/design/metrics.md, "Frontend Stats Collection"; vllm/renderers/base.py, render_cmpl_async.
- `vllm:time_to_first_token_seconds` and `vllm:e2e_request_latency_seconds` end when the same
  process takes the engine's output, with the first token or the last, out of its queue: before
  detokenisation, serialisation and sending. Source: the same page; vllm/v1/metrics/stats.py,
  IterationStats, update_from_output and update_from_finished_request.
- `vllm:request_time_per_output_token_seconds` is the time from a request's first token to its last
  by the engine core's own stamps, over n - 1. Source: the same file.

So what the client's mean has over the server's is: the client's sending, loopback, accepting,
reading and parsing the request, and all of its waiting for the API server's event loop before the
stamp; then detokenisation, waiting for that loop again, serialisation, loopback, and the client's
own receipt. Not in it, since the server's clock holds it too: tokenisation, the way to the engine
core and back, queueing there. Both sides take all requests of the window, those of its ramp too,
because the server counts them. It is the wall clock, which NTP may slew by 500 ppm (RFC 5905).
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO

import numpy as np

from analysis.definitions import ChunkColumns
from analysis.plan_order import place_of
from analysis.reading import Boot, MeasuredWindow, Run
from records.digest import Digest
from records.errors import FormatError
from records.limits import printable
from records.run_directory import RunDirectory, RunFileError, is_regular

# Pages are of some 50 kB; what unpacks to more is not one.
_MOST_BYTES = 1 << 26
_MOMENTS = ("before", "after")
_MS_PER_S, _NS_PER_MS = 1e3, 1e6
# Of all requests since the server began: thirty thousand years. Beyond it microseconds are lost.
_MOST_S = 1e12


@dataclass(frozen=True, slots=True)
class Quantity:
    """A time of requests that both sides give a mean of, in ms. `family`: the server's histogram.

    `name`: in words; `id` is what claims and tables call it.
    """

    id: str
    name: str
    unit: str
    family: str


QUANTITIES = (
    Quantity("ttft.sent", "TTFT from sending", "ms", "vllm:time_to_first_token_seconds"),
    Quantity("whole", "end-to-end time", "ms", "vllm:e2e_request_latency_seconds"),
    Quantity("tpot.n-1", "TPOT(n-1)", "ms/token", "vllm:request_time_per_output_token_seconds"),
)


@dataclass(frozen=True, slots=True)
class Means:
    """Means over a window's requests of one quantity, ms, by each clock. `why`: there are none."""

    server_ms: float | None = None
    client_ms: float | None = None
    why: str = ""

    @property
    def over_server_ms(self) -> float | None:
        """The client's mean minus the server's."""
        if self.server_ms is None or self.client_ms is None:
            return None
        return self.client_ms - self.server_ms


@dataclass(frozen=True, slots=True)
class WindowClock:
    """Both clocks of one usable window. `client`: who measured; `means`: by id of QUANTITIES.

    `place`: of arm and window in their plan, from 0.
    """

    run_id: str
    boot: str
    arm: str
    window: str
    client: str
    means: Mapping[str, Means]
    place: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Page:
    """A kept page, by its run and its name there, and its `totals`."""

    name: str
    values: Mapping[str, float]


@dataclass(slots=True)
class _Seen:
    """What the client saw of a window's requests: sums over all of them, ns and ms."""

    requests: int = 0
    completed: int = 0
    without_chunk: int = 0
    one_token: int = 0
    whole_ns: int = 0
    first_ns: int = 0
    per_token_ms: float = 0.0


def window_clocks(run: Run) -> list[WindowClock]:
    """Every usable window, the other clients' too, in the order of the records.

    RunFileError: a page is not the one that the journal names.
    """
    return [
        _window(run, boot, window)
        for boot in run.boots
        for window in (*boot.usable_windows, *boot.peer_windows)
    ]


def _window(run: Run, boot: Boot, measured: MeasuredWindow) -> WindowClock:
    window, seen = measured.window, _seen(measured)
    why, pages = _why_not(run, measured, seen), {}
    if not why and measured.ended and run.directory:
        try:
            pages = {
                _moment(name): _Page(f"{run.run_id}/{name}", read_page(run.directory, name, digest))
                for name, digest in measured.ended.metrics.items()
            }
        except FormatError as error:
            why = f"{run.run_id}/{error.message}"
    means = {
        one.id: Means(why=why) if why else _means(one, seen, pages["before"], pages["after"])
        for one in QUANTITIES
    }
    arm = boot.planned.arm if boot.planned else boot.started.arm
    place = place_of(run.started.plan, arm, window.id)
    return WindowClock(run.run_id, boot.started.boot, arm, window.id, window.client, means, place)


def _why_not(run: Run, measured: MeasuredWindow, seen: _Seen) -> str:
    """Why the pages cannot tell of exactly these requests; "" where they may."""
    ended = measured.ended
    if ended is None or run.directory is None:
        return "no page was kept"
    moments = {_moment(name) for name in ended.metrics}
    for moment in _MOMENTS:
        if moment not in moments:
            return f"no page from {moment} it"
    if not seen.requests == seen.completed == ended.report.completed == ended.report.planned:
        return "a request did not complete"
    return "" if seen.requests else "no request"


def _means(quantity: Quantity, seen: _Seen, page_before: _Page, page_after: _Page) -> Means:
    count, total = f"{quantity.family}_count", f"{quantity.family}_sum"
    before, after = page_before.values, page_after.values
    if not {count, total} <= before.keys() & after.keys():
        return Means(why=f"the server has no {quantity.family}")
    for page in (page_before, page_after):
        for name in (count, total):
            if not math.isfinite(page.values[name]):
                return Means(why=f"{page.name}: {name} is {page.values[name]}")
    if after[count] - before[count] != seen.requests:
        # By more: others were served, too, or one request was counted twice.
        return Means(why="the server counted other requests than the window's")
    if not 0 <= before[total] <= after[total] <= _MOST_S:
        return Means(why="the server's sums are no times of requests")
    client_ms = _client_ms(quantity, seen)
    if isinstance(client_ms, str):
        return Means(why=client_ms)
    return Means((after[total] - before[total]) * _MS_PER_S / seen.requests, client_ms)


def _client_ms(quantity: Quantity, seen: _Seen) -> float | str:
    """The client's mean; a text says why there is none."""
    if quantity.id == "whole":
        return seen.whole_ns / seen.requests / _NS_PER_MS
    if seen.without_chunk:
        return "a request without a chunk"
    if quantity.id == "ttft.sent":
        return seen.first_ns / seen.requests / _NS_PER_MS
    # The server takes such a request's for 0 (stats.py); here it is undefined.
    return "a request of one token" if seen.one_token else seen.per_token_ms / seen.requests


def _seen(measured: MeasuredWindow) -> _Seen:
    seen = _Seen()
    for part in measured.source.batches():
        chunks: ChunkColumns = part.chunks
        spans_ns, later = chunks.last_ns() - chunks.first_ns(), chunks.output_tokens() - 1
        several = later > 0
        seen.requests += len(part)
        seen.completed += int(part.completed.sum())
        seen.without_chunk += int((chunks.chunk_counts() == 0).sum())
        seen.one_token += int((~several).sum())
        seen.whole_ns += int(part.scalars["end_ns"].sum())
        seen.first_ns += int((chunks.first_ns() - chunks.sent_ns).sum())
        seen.per_token_ms += float(np.sum(spans_ns[several] / later[several])) / _NS_PER_MS
    return seen


def _moment(name: str) -> str:
    """ "before" or "after", from metrics/<boot>.<window>.before.prom.gz."""
    return name.removesuffix(".prom.gz").rpartition(".")[2]


def read_page(directory: RunDirectory, name: str, digest: Digest) -> dict[str, float]:
    """Sums (s) and counts of the histograms of QUANTITIES on a kept page, by the sample's name.

    RunFileError: missing, or other bytes than `digest` says. FormatError: no page; it names the
    page as the journal does, so that tables say the same wherever the run lies.
    """
    path = directory.path / name
    if not is_regular(path):
        raise RunFileError(path, 0, f"missing; want a page of {digest}")
    data = path.read_bytes()
    if Digest.of(data) != digest:
        raise RunFileError(path, 0, f"got {Digest.of(data)}, want {digest} (from the journal)")
    try:
        return totals(_unpacked(data))
    except FormatError as error:
        raise FormatError(f"{name}: {printable(error.message)}") from error


def _unpacked(data: bytes) -> str:
    try:
        with gzip.open(BytesIO(data)) as page:
            text = page.read(_MOST_BYTES + 1).decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise FormatError(f"cannot be unpacked: {error}") from error
    if len(text) > _MOST_BYTES:
        raise FormatError(f"more than {_MOST_BYTES} bytes unpacked: no page")
    return text


def totals(text: str) -> dict[str, float]:
    """Sums and counts of the histograms of QUANTITIES, over all label sets, by the sample's name.

    A histogram that the page does not have is not there; a value may be no finite number.
    FormatError: a line that is no sample, or a series that stands twice.
    """
    # Here, because most verbs do without it.
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, float] = {}
    series: set[tuple[str, frozenset[tuple[str, str]]]] = set()
    try:
        for family in text_string_to_metric_families("\n".join(_lines(text))):
            for sample in family.samples:
                one = (sample.name, frozenset(sample.labels.items()))
                if one in series:
                    raise FormatError(f"{sample.name} with the same labels twice")
                series.add(one)
                found[sample.name] = found.get(sample.name, 0.0) + float(sample.value)
    except ValueError as error:
        raise FormatError(f"not the text format of Prometheus: {error}") from error
    return found


def _lines(text: str) -> Iterator[str]:
    """The lines of those samples: one in a hundred, and the parser takes its time for each."""
    wanted = {f"{one.family}_{part}" for one in QUANTITIES for part in ("sum", "count")}
    for line in text.split("\n"):
        name = line.partition("{")[0].partition(" ")[0]
        if name in wanted:
            yield line
