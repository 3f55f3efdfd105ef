"""Runs of the real harness archive against the reference server, for tests of what voids a window.

Invariant: everything is real but the engine: archive, job, processes, sockets, journal, seal.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from kit import zipapp
from records import canonical, schema
from records.decode import to_object
from records.job import EngineOnHost, Job, ModelOnHost
from records.load import Load, Prompts, Sampling, Window
from records.measurement import Request
from records.plan import Arm, Bounds, Calibration, Engine, Estimates, Plan, Requirements, Warmup
from records.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
ZERO, ONE = Decimal(0), Decimal(1)
TOKENS = 16
# Wide enough for a busy machine: what is provoked lies far beyond.
WIDE = Bounds(10**9, 10**9, 900_000, 400_000, 10**6, 10**8)
SCHEDULE = ("--ttft", "2ms", "--gap", "10ms", "--margin", "0us")
# Forty tokens, always the same: two and a half blocks of the prefix cache.
PROMPTS = Prompts("random", 1, 1, False, input_tokens=40, token_low=10, token_high=1000)


def window(load: Load, prompts: Prompts = PROMPTS, endpoint: str = "completions") -> Window:
    sampling = Sampling(TOKENS, TOKENS, True, ZERO, ONE, 0, ZERO, 0, ZERO, ZERO, ONE)
    return Window("w", endpoint, load, prompts, sampling)


def plan(arms: Mapping[str, Sequence[str]], bounds: Bounds, windows: Sequence[Window]) -> Plan:
    """One boot an arm, each the reference server with these options."""
    return Plan(
        1,
        "void",
        "what voids a window",
        1,
        1,
        Engine("reference", "1", ""),
        Requirements(1, 1, (), ZERO, 0),
        Warmup(1, 1, 30),
        Calibration(5, 1, 8),
        bounds,
        Estimates(1, 1, 1),
        (20,),
        tuple(
            Arm(id_, "synthetic", "", (*SCHEDULE, *options), {}, {"fault": id_}, "none")
            for id_, options in arms.items()
        ),
        tuple(windows),
    )


@dataclass(frozen=True)
class Seen:
    """One window of a run: its end and its requests."""

    ended: schema.WindowEnded
    requests: tuple[Request, ...]

    @property
    def rules(self) -> set[str]:
        return {reason.partition(":")[0] for reason in self.ended.void}


def carry_out(
    directory: Path,
    what: Plan,
    *,
    env: Mapping[str, str] = os.environ,
    prompts: Mapping[str, bytes] | None = None,
    client_cpus: tuple[int, ...] = (),
    engine_cpus: tuple[int, ...] = (),
) -> dict[tuple[str, str], Seen]:
    """Run the plan to its seal; its windows by (arm, window id)."""
    harness, digest = zipapp.build_named(directory / "harness", ROOT)
    launcher = (sys.executable, "-I", "-S", str(harness), "reference")
    job = Job(
        run_id="r",
        plan=what,
        engine=EngineOnHost("reference", launcher, (), {}, "", digest),
        models={"synthetic": ModelOnHost("synthetic", {})},
        run_directory=str(directory / "r"),
        scratch=str(directory / "scratch"),
        host_salt="s",
        client_cpus=client_cpus,
        engine_cpus=engine_cpus,
    )
    for name, data in (prompts or {}).items():
        path = Path(job.prompts_directory) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (directory / "job.json").write_bytes(canonical.encode(to_object(job)))
    argv = [sys.executable, "-I", "-S", str(harness), "run", str(directory / "job.json")]
    done = subprocess.run(argv, env=dict(env), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run = RunDirectory(directory / "r")
    assert run.is_sealed
    return _windows(run)


def _windows(run: RunDirectory) -> dict[tuple[str, str], Seen]:
    arms: dict[str, str] = {}
    requests: dict[tuple[str, str], list[Request]] = {}
    seen: dict[tuple[str, str], Seen] = {}
    for line in run.read():
        event = line.event
        if isinstance(event, schema.BootStarted):
            arms[event.boot] = event.arm
        elif isinstance(event, schema.WindowRequests):
            requests.setdefault((event.boot, event.window), []).extend(event.requests)
        elif isinstance(event, schema.WindowEnded):
            found = tuple(requests.get((event.boot, event.window), ()))
            seen[arms[event.boot], event.window] = Seen(event, found)
    return seen
