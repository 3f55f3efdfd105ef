"""SIGTERM at moments of chance: the harness marks its boot and ends, and the same job goes on."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kit import zipapp
from records import canonical, schema
from records.decode import to_object
from records.errors import InterruptedRunError
from records.job import EngineOnHost, Job, ModelOnHost
from records.load import Load
from records.run_directory import RunDirectory
from tests.remote import void_runs

STOPS = 8
# From the harness's first record on; what comes later than the last boot finds a sealed run.
LATEST_S = 2.0
# The first ones come before any run of two boots can have ended, so that some are sure to be met.
EARLY, EARLY_S = 3, 0.4


def prepared(place: Path) -> list[str]:
    """The command that carries out, or goes on with, a plan of two boots."""
    harness, digest = zipapp.build_named(place / "harness", void_runs.ROOT)
    launcher = (sys.executable, "-I", "-S", str(harness), "reference")
    job = Job(
        run_id="r",
        plan=void_runs.plan(
            {"one": (), "two": ()},
            void_runs.WIDE,
            (void_runs.window(Load("closed", 2, requests=4)),),
        ),
        engine=EngineOnHost("reference", launcher, (), {}, "", digest),
        models={"synthetic": ModelOnHost("synthetic", {})},
        run_directory=str(place / "r"),
        scratch=str(place / "scratch"),
        host_salt="s",
    )
    (place / "job.json").write_bytes(canonical.encode(to_object(job)))
    return [sys.executable, "-I", "-S", str(harness), "run", str(place / "job.json")]


@pytest.mark.timeout(300)
def test_no_stop_signal_is_lost_and_nothing_is_measured_twice(tmp_path: Path) -> None:
    argv = prepared(tmp_path)
    run = RunDirectory(tmp_path / "r")
    seed = time.time_ns()
    moments = random.Random(seed)
    log = tmp_path / "log"
    stopped = 0
    for _ in range(STOPS):
        size = run.events.stat().st_size if run.events.exists() else 0
        with log.open("wb") as output:
            process = subprocess.Popen(argv, stdout=output, stderr=output)
        while process.poll() is None and not (
            run.events.exists() and run.events.stat().st_size > size
        ):
            time.sleep(0.01)
        time.sleep(moments.uniform(0, EARLY_S if stopped < EARLY else LATEST_S))
        process.send_signal(signal.SIGTERM)
        status = process.wait(60)
        if run.is_sealed:
            break
        stopped += 1
        assert status == InterruptedRunError.exit_code, f"seed {seed}\n{log.read_text()}"
    assert stopped > 1, f"seed {seed}"
    subprocess.run(argv, check=True, capture_output=True)
    assert run.is_sealed
    planned = {e.event.boot: e.event.planned for e in run.read() if is_a(e, schema.BootStarted)}
    ended = [e.event for e in run.read() if is_a(e, schema.BootEnded)]
    assert [e.boot for e in ended] == list(planned), "each boot that began has an end, in order"
    completed = [planned[e.boot] for e in ended if e.outcome == "completed"]
    assert sorted(completed) == sorted(set(planned.values())), "each planned boot once"
    hosts = [e.event for e in run.read() if is_a(e, schema.HostObserved)]
    assert [("processors" in host.facts) for host in hosts] == [h.phase != "end" for h in hosts]


def is_a(envelope: object, kind: type) -> bool:
    return isinstance(getattr(envelope, "event", None), kind)
