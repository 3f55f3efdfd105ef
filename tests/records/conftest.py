"""A small plan, one event of every type, and a sealed run made by the real journal and seal."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from records import schema
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
    Requirements,
    Warmup,
)
from records.run_directory import RunDirectory
from records.seal import write_seal

# These examples flush to a disk that others use too; how long that takes proves nothing.
settings.register_profile("records", deadline=None)
settings.load_profile("records")

RUN_ID = "20261130-sample"
LOG = gzip.compress(b"engine says: ready\n" * 3, mtime=0)
PAGE = gzip.compress(b"vllm:num_requests_running 0\n", mtime=0)


def _plan() -> Plan:
    sampling = Sampling(
        max_tokens=8,
        min_tokens=8,
        ignore_eos=True,
        temperature=Decimal(0),
        top_p=Decimal("1.0"),
        top_k=-1,
        min_p=Decimal(0),
        seed=7,
        presence_penalty=Decimal(0),
        frequency_penalty=Decimal(0),
        repetition_penalty=Decimal("1.0"),
    )
    window = Window(
        "c1", "completions", Load("closed", 1, requests=2), Prompts("builtin", 2, 1, True), sampling
    )
    arms = tuple(
        Arm(name, "tiny", config, ("--dtype", "bfloat16"), {}, {"speculation": name}, "warm")
        for name, config in (
            ("none", ""),
            ("ngram", '{"method":"ngram","num_speculative_tokens":4}'),
            ("draft", '{"model":"tiny-draft","num_speculative_tokens":4}'),
        )
    )
    return Plan(
        format=1,
        id="sample",
        title="A sample: ä 日本 😀",
        seed=20261130,
        blocks=3,
        engine=Engine("vllm", "0.29.0", "wheels-cpu.lock"),
        requirements=Requirements(2048, 1024, ("avx2",), Decimal("0"), 0),
        warmup=Warmup(2, 3, 600),
        calibration=Calibration(20, 4, 16),
        bounds=Bounds(1_000_000, 1_000_000, 500_000, 10_000, 10_000, 1_000_000),
        estimates=Estimates(120, 60, 10),
        thresholds_ms=(20, 75),
        arms=arms,
        windows=(window,),
    )


def _events(plan: Plan) -> list[Any]:
    some = Digest.of(b"some")
    clock = schema.Clock(10**15, 18 * 10**17, "6a1f")
    report = ClientReport(
        "kernel", 1, 2, 1, 1, 0, 3, 1, 10**9, 100, 200, 300, 50, 10_000, 10**7, 5, 900, 10**8
    )
    done = Request(
        index=0,
        outcome="completed",
        ramp=False,
        scheduled_ns=0,
        sent_ns=1000,
        first_byte_ns=99_000_000,
        end_ns=181_000_000,
        status=200,
        chunk_ns=(100_000_000, 140_000_000, 180_000_000),
        chunk_tokens=(1, 3, 1),
        merged=(1,),
        prompt_tokens=12,
        completion_tokens=5,
        cached_tokens=-1,
        finish_reason="length",
        tokens_digest=some,
        step_accepted=(0, 2, 0),
        error="",
        detail="",
    )
    lost = Request(
        1, "failed", True, 0, 1000, -1, 5000, -1, (), (), (), -1, -1, -1, "", None, (), "reset", "x"
    )
    return [
        schema.RunStarted(1, RUN_ID, True, plan, plan.digest, some, "3.10.12", clock),
        schema.HostObserved("start", "host-1", {"cores": 2, "flags": ["avx2"], "gpu": None}),
        schema.SchedulerObserved(
            "start", "slurm", "12_3", "node-1", 1, "scontrol", {"tasks": 1, "limit_s": 3600}
        ),
        schema.EngineBound("before", "reference", some, "wheels-cpu.lock", some, {}),
        schema.ModelBound("before", "tiny", {"model.safetensors": some}),
        schema.Calibrated(1, 20_000_000, 64, 9000, 21_000, 30_000, 8000, 90_000, report),
        schema.BootStarted(
            "b01-1-none", "b01-1-none", 1, "none", ("vllm", "serve"), {"A": "b"}, 8000, {}, clock
        ),
        schema.BootHealthy("b01-1-none", 4 * 10**9),
        schema.BootWarmed("b01-1-none", (2, 0), True, 10**9),
        schema.EngineDecided("b01-1-none", "0.29.0", {"attention_backend": "CPU_ATTN"}),
        schema.WindowStarted("b01-1-none", "c1", 5 * 10**9),
        schema.WindowRequests("b01-1-none", "c1", (done, lost)),
        schema.WindowEnded(
            "b01-1-none",
            "c1",
            10**15,
            report,
            schema.Counters(3, 12, 2, 5, 12, 0, 0),
            {"metrics/after.prom.gz": Digest.of(PAGE)},
            (),
            0,
            {},
            ("lost: 1 of 2 requests failed",),
        ),
        schema.BootEnded(
            "b01-1-none", "completed", "", "", {}, {"logs/engine.log.gz": Digest.of(LOG)}
        ),
        schema.JournalRepaired(17, some),
        schema.RunResumed(some, "", clock),
        schema.RunEnded(1, 0, ("json",), clock),
        schema.RunClosed("the lease was over", "0.1", 2 * 10**18, 17, "", ("engine", "tiny")),
    ]


@pytest.fixture(scope="session")
def plan() -> Plan:
    """Three arms in three blocks."""
    return _plan()


@pytest.fixture(scope="session")
def events(plan: Plan) -> list[Any]:
    """One event of every type, in an order a run could have."""
    return _events(plan)


@pytest.fixture(scope="session")
def make_run(events: list[Any]) -> Callable[[Path], RunDirectory]:
    """Write and seal a run of these events below a directory."""

    def make(data: Path) -> RunDirectory:
        path = data / RUN_ID
        (path / "logs").mkdir(parents=True)
        (path / "metrics").mkdir()
        with Journal.create(path / "events.jsonl") as journal:
            for number, event in enumerate(events):
                journal.append(event, t_ns=10**15 + number)
            (path / "logs" / "engine.log.gz").write_bytes(LOG)
            (path / "metrics" / "after.prom.gz").write_bytes(PAGE)
            write_seal(path, RUN_ID, journal.state)
        return RunDirectory(path)

    return make
