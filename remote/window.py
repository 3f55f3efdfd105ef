"""One measured window: counters before, load, counters after, evidence, verdict.

Invariant: the window's requests are recorded whatever becomes of it; whether it may be used is
decided afterwards by `remote.validity` and recorded as reasons.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from records import schema
from records.decode import to_object
from records.errors import EngineBootError
from records.load import Window
from records.measurement import Request
from remote.attachment import keep_compressed
from remote.client.plain import measure_plain
from remote.client.window import Target, WindowResult, measure
from remote.context import Context
from remote.engine.busiest import busiest, read_threads
from remote.engine.log import jit_lines
from remote.engine.metrics import Counters, delta
from remote.engine.process import EngineProcess
from remote.engine.tail import LogTail
from remote.gpu_watch import watch_gpu
from remote.host.sample import HostSampler
from remote.http_get import get
from remote.prompts.source import request_source
from remote.validity import WindowEvidence, void_reasons

PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
# The engine counts a request's last tokens a moment after the client has them.
_SETTLE_POLL_S = 0.05
_SETTLE_POLLS = 40
UNREAD = schema.Counters(*[-1] * 7)  # the engine died before it could be asked


@dataclass(frozen=True, slots=True)
class Booted:
    """A healthy engine and how to reach it."""

    id: str
    engine: EngineProcess
    host: str
    port: int
    served_name: str
    prefix_cache: bool

    def target(self, endpoint: str) -> Target:
        """Where requests for an endpoint go."""
        return Target(host=self.host, port=self.port, path=PATHS[endpoint])


class _Tally:
    """What the rules need to know of the requests, counted as they are recorded."""

    def __init__(self, context: Context, boot: str, window: Window) -> None:
        self._context = context
        self._boot = boot
        self._window = window
        self.tokens = 0
        self.short = 0

    def record(self, requests: Sequence[Request]) -> None:
        """Record one batch."""
        sampling = self._window.sampling
        least = sampling.max_tokens if sampling.ignore_eos else sampling.min_tokens
        for request in requests:
            received = sum(request.chunk_tokens)
            self.tokens += received
            self.short += request.outcome == "completed" and received < least
        self._context.record(schema.WindowRequests(self._boot, self._window.id, tuple(requests)))


def measure_window(context: Context, booted: Booted, window: Window, healthy_ns: int) -> bool:
    """Measure one window and record it whole; whether the engine still answers after it."""
    listen = (booted.host, booted.port)
    tail = LogTail(booted.engine.log_path)
    tail.read()
    before = _settled(context, listen)
    context.record(schema.WindowStarted(booted.id, window.id, time.monotonic_ns() - healthy_ns))
    tally = _Tally(context, booted.id, window)
    members = [process.pid for process in booted.engine.members()]
    threads = read_threads(members)
    host = HostSampler(context.job.engine_cpus)
    with watch_gpu(context.scratch, booted.engine) as gpu:
        result = _measured(context, booted, window, tally)
    host_did = host.stop()
    thread = busiest(threads, read_threads(members))
    lines = jit_lines(tail.read().text)
    metrics = {"before": before.page}
    counters = UNREAD
    after = _if_it_answers(context, booted)
    if after is not None:
        metrics["after"] = after.page
        counters = _recorded(delta(after.counters, before.counters))
    evidence = WindowEvidence(
        report=result.report,
        counters=counters,
        client_tokens=tally.tokens,
        short_responses=tally.short,
        declared_prefix_cache=booted.prefix_cache,
        calibrated_p99_ns=context.calibrated_p99_ns.get(window.load.concurrency, -1),
        jit_lines=[line.kernel for line in lines],
        steal_ppm=host_did.steal_ppm,
        gpu=gpu.summary(),
        by_peer=window.by_peer,
    )
    names = {f"metrics/{booted.id}.{window.id}.{at}.prom.gz": page for at, page in metrics.items()}
    context.record(
        schema.WindowEnded(
            boot=booted.id,
            window=window.id,
            start_ns=result.start_ns,
            report=result.report,
            counters=counters,
            metrics={name: keep_compressed(context, name, page) for name, page in names.items()},
            jit_lines=tuple(context.redact(line.kernel) for line in lines),
            steal_ppm=evidence.steal_ppm,
            facts={
                "gpu": to_object(gpu.facts()),
                "host": to_object(host_did),
                "busiest_thread": context.redact_value(to_object(thread)) if thread else None,
            },
            void=void_reasons(context.plan.bounds, evidence),
        )
    )
    return after is not None


def _measured(context: Context, booted: Booted, window: Window, tally: _Tally) -> WindowResult:
    """The load itself, by the client that the window names."""
    target = booted.target(window.endpoint)
    requests = request_source(window, booted.served_name, context.prompts)
    cpus = context.job.client_cpus
    if window.by_peer:
        return measure_plain(target, requests, window.load, sink=tally.record, cpus=cpus)
    return measure(
        target,
        requests,
        window.load,
        seed=window.prompts.seed,
        sink=tally.record,
        cpus=cpus or None,
        spill_dir=context.scratch,
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    page: bytes
    counters: Counters


def _if_it_answers(context: Context, booted: Booted) -> _Reading | None:
    """The counters after the window; None from an engine that died in it."""
    if booted.engine.exit_status() is not None:
        return None
    try:
        return _settled(context, (booted.host, booted.port))
    except EngineBootError:
        return None


def _settled(context: Context, listen: tuple[str, int]) -> _Reading:
    """The server's counters once they have stopped moving: two equal readings, nothing running."""
    reading = _read(context, listen)
    for _ in range(_SETTLE_POLLS):
        time.sleep(_SETTLE_POLL_S)
        previous, reading = reading, _read(context, listen)
        if reading.counters == previous.counters and not reading.counters.requests_running:
            break
    return reading


def _read(context: Context, listen: tuple[str, int]) -> _Reading:
    page = get(listen, context.adapter.metrics_path)
    return _Reading(page, context.adapter.read_metrics(page))


def _recorded(counters: Counters) -> schema.Counters:
    """The counters as records hold them: -1 where the server has no such family."""
    spec = counters.spec_decode
    return schema.Counters(
        drafts=spec.drafts if spec else -1,
        draft_tokens=spec.draft_tokens if spec else -1,
        accepted_tokens=spec.accepted_tokens if spec else -1,
        generation_tokens=counters.generation_tokens,
        prompt_tokens=counters.prompt_tokens,
        prefix_cache_hits=counters.prefix_cache.hits if counters.prefix_cache else -1,
        preemptions=-1 if counters.preemptions is None else counters.preemptions,
    )
