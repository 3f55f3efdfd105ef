"""The client measured by what it measures with: against a server whose send times are known.

Invariant: the calibration runs the very code path of the windows, on this host, at the plan's own
concurrencies, before any window; its result is a record, good or bad.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from records import schema
from records.errors import CalibrationError, EngineBootError, KitError
from records.load import Load, Prompts, Sampling, Window
from records.measurement import ClientReport, Request
from records.plan import Calibration
from remote import leftover
from remote.client.window import Target, measure
from remote.context import Context
from remote.engine import proctree
from remote.engine.guarded import Guarded
from remote.engine.ports import free_port
from remote.http_get import get
from remote.prompts.source import request_source
from remote.reference.truth import Truth, decode

HOST = "127.0.0.1"
_BOOT_TIMEOUT_S = 20.0
_STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class Setting:
    """How to calibrate: what the plan asks, the client's processors, where logs and spill go."""

    asked: Calibration
    cpus: tuple[int, ...]
    scratch: Path
    kernel_stamps: bool = True


def calibrate(context: Context) -> None:
    """Calibrate at every concurrency of the plan; fills `context.calibrated_p99_ns`."""
    setting = Setting(context.plan.calibration, context.job.client_cpus, context.scratch)
    for concurrency in sorted({window.load.concurrency for window in context.plan.windows}):
        context.say(f"calibrating the client at concurrency {concurrency}")
        event = calibrate_at(setting, concurrency)
        context.calibrated_p99_ns[concurrency] = event.bound_ns
        context.record(event)


def calibrate_at(setting: Setting, concurrency: int) -> schema.Calibrated:
    """Calibrate at one concurrency, against a server started for it. CalibrationError."""
    with _reference_server(setting) as port:
        return _measured(setting, port, concurrency)


def _measured(setting: Setting, port: int, concurrency: int) -> schema.Calibrated:
    asked = setting.asked
    window = Window(
        id="calibration",
        endpoint="completions",
        load=Load("closed", concurrency, requests=concurrency * asked.requests_per_stream),
        prompts=Prompts("builtin", count=1, seed=0, unique=False),
        sampling=_greedy(asked.output_tokens),
    )
    requests: list[Request] = []
    result = measure(
        Target("/v1/completions", HOST, port, kernel_stamps=setting.kernel_stamps),
        request_source(window, "synthetic"),
        window.load,
        seed=0,
        sink=requests.extend,
        cpus=setting.cpus or None,
        spill_dir=setting.scratch,
    )
    truths = decode(get((HOST, port), "/truth"))
    errors = sorted(stamp_errors_ns(result.start_ns, requests, truths))
    late = sorted(s - d for t in truths for s, d in zip(t.sent_ns, t.due_ns, strict=True))
    return schema.Calibrated(
        concurrency=concurrency,
        step_gap_ns=asked.step_gap_ms * 1_000_000,
        chunks=len(errors),
        error_p50_ns=nearest_rank(errors, 50),
        error_p99_ns=nearest_rank(errors, 99),
        error_max_ns=errors[-1],
        server_late_p99_ns=nearest_rank(late, 99),
        capacity_chunks_per_s=capacity_chunks_per_s(result.report),
        report=result.report,
    )


def stamp_errors_ns(
    start_ns: int, requests: Sequence[Request], truths: Sequence[Truth]
) -> list[int]:
    """Receive stamp minus true send stamp of every chunk not `merged`, in ns.

    Requests and truths are paired by the request id. CalibrationError where one has no partner,
    did not complete, or has another number of chunks: then nothing can be said of this client.
    """
    sent = {truth.request_id: truth.sent_ns for truth in truths}
    errors = []
    for request in requests:
        truth = sent.get(str(request.index))
        if request.outcome != "completed" or truth is None or len(truth) != len(request.chunk_ns):
            raise CalibrationError(
                f"request {request.index} of the calibration: {request.outcome} {request.error}, "
                f"{len(request.chunk_ns)} chunks received, {len(truth or ())} sent",
                remedy="run again on an idle host",
            )
        origin = start_ns + request.sent_ns
        upper_bounds = frozenset(request.merged)
        errors += [
            origin + received - sent_ns
            for i, (received, sent_ns) in enumerate(zip(request.chunk_ns, truth, strict=True))
            if i not in upper_bounds
        ]
    if not errors:
        raise CalibrationError("every chunk of the calibration shared a read with another")
    return errors


def nearest_rank(ordered: Sequence[int], percent: int) -> int:
    """The nearest-rank percentile of ascending values (Hyndman and Fan 1996, definition 1)."""
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def capacity_chunks_per_s(report: ClientReport) -> int:
    """Chunks per second at which the busiest worker would fill one core, by proportion."""
    busy_ns = report.busiest_cpu_ppm * report.wall_ns // 1_000_000
    return report.chunks * 1_000_000_000 // max(busy_ns * report.workers, 1)


def _greedy(tokens: int) -> Sampling:
    zero, one = Decimal(0), Decimal(1)
    return Sampling(tokens, 0, True, zero, one, 0, zero, 0, zero, zero, one)


@contextmanager
def _reference_server(setting: Setting) -> Iterator[int]:
    """The harness's own reference server on a free port, ended with the block."""
    port = free_port(HOST)
    gap_ns = setting.asked.step_gap_ms * 1_000_000
    log = setting.scratch / "reference.log"
    argv = [sys.executable, "-I", "-S", sys.argv[0], "reference", "--port", str(port)]
    argv += [
        "--gap",
        f"uniform:{gap_ns // 2}ns:{gap_ns * 3 // 2}ns",
        "--ttft",
        f"uniform:0ns:{gap_ns}ns",
    ]
    proctree.adopt_orphans()  # where its guard is killed, it becomes this process's to end
    # Guarded and remembered as an engine is: none may be left to measure beside.
    with log.open("wb") as out:
        server = Guarded(argv, os.environ, Path.cwd(), out)
    try:
        leftover.remember(setting.scratch, server.key)
    except (OSError, KitError):
        server.let_go()
        raise
    try:
        server.go()
        _wait_healthy(server, port)
        yield port
    finally:
        server.terminate(_STOP_S)
        leftover.forget(setting.scratch)


def _wait_healthy(server: Guarded, port: int) -> None:
    deadline = time.monotonic() + _BOOT_TIMEOUT_S
    while True:
        try:
            get((HOST, port), "/health")
        except EngineBootError as error:
            if server.exit_status() is not None or time.monotonic() > deadline:
                raise CalibrationError(
                    f"the reference server did not start: {error.message}", remedy="kit calibrate"
                ) from error
            time.sleep(0.05)
        else:
            return
