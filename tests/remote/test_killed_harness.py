"""SIGKILL at moments of chance in a boot: no process is left, and the same job goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from records import canonical, schema
from records.decode import from_object, to_object
from records.job import Job
from records.plan import Calibration
from records.run_directory import RunDirectory
from remote.engine import proctree
from tests.remote.test_stop_at_any_moment import prepared

# From boot.started on; the first falls upon the start of the engine.
LATEST_S = (0.0, 0.1, 0.3, 0.6)


def running_on(scratch: Path) -> list[int]:
    """Who holds a file below the harness's scratch directory open, as an engine does its log."""
    found = []
    for pid in proctree.snapshot():
        try:
            files = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
        except OSError:
            continue
        if any(file.startswith(f"{scratch}/logs/") for file in files):
            found.append(pid)
    return found


def boots_begun(run: RunDirectory) -> int:
    text = run.events.read_bytes() if run.events.exists() else b""
    return text.count(b'"type":"boot.started"')


@pytest.mark.timeout(300)
def test_a_kill_in_a_boot_leaves_no_process_and_the_job_goes_on(tmp_path: Path) -> None:
    argv = prepared(tmp_path)
    run = RunDirectory(tmp_path / "r")
    seed = time.time_ns()
    moments = random.Random(seed)
    for latest_s in LATEST_S:
        begun = boots_begun(run)
        with (tmp_path / "log").open("wb") as log:
            harness = subprocess.Popen(argv, stdout=log, stderr=log)
        while harness.poll() is None and boots_begun(run) == begun:
            time.sleep(0.002)
        time.sleep(moments.uniform(0, latest_s))
        harness.kill()
        assert harness.wait() == -signal.SIGKILL, f"seed {seed}\n{(tmp_path / 'log').read_text()}"
        while running_on(tmp_path / "scratch"):  # the test's own time limit ends a wait in vain
            time.sleep(0.02)
    subprocess.run(argv, check=True, capture_output=True)
    ended = [e.event for e in run.read() if isinstance(e.event, schema.BootEnded)]
    assert run.is_sealed
    assert [e.outcome for e in ended].count("completed") == 2
    assert any("the harness died in this boot" in e.cause for e in ended)


def calibrated_for_seconds(path: Path) -> None:
    """The job in this file, its calibration prolonged."""
    job = from_object(Job, canonical.decode(path.read_bytes()))
    plan = replace(job.plan, calibration=Calibration(20, 2, 64))
    path.write_bytes(canonical.encode(to_object(replace(job, plan=plan))))


def reference_server(scratch: Path) -> proctree.Process | None:
    """The server that is noted, once it executes."""
    try:
        pid = json.loads((scratch / "engine.json").read_bytes())["pid"]
        runs = b"\0reference\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return None
    return proctree.read(pid) if runs else None


def test_a_server_of_the_calibration_that_lost_its_guard_too_is_ended_by_the_next_start(
    tmp_path: Path,
) -> None:
    argv = prepared(tmp_path)
    calibrated_for_seconds(tmp_path / "job.json")
    run = RunDirectory(tmp_path / "r")
    with (tmp_path / "log").open("wb") as log:
        harness = subprocess.Popen(argv, stdout=log, stderr=log)
    while (server := reference_server(tmp_path / "scratch")) is None:
        assert harness.poll() is None, (tmp_path / "log").read_text()
        time.sleep(0.005)
    try:
        os.kill(server.parent, signal.SIGKILL)
        harness.kill()
        harness.wait()
        assert not boots_begun(run)
        assert alive(server), "nobody was left to end it"
        subprocess.run(argv, check=True, capture_output=True)
        assert run.is_sealed
        assert not alive(server)
        assert not (tmp_path / "scratch" / "engine.json").exists()
    finally:
        if alive(server):
            os.kill(server.pid, signal.SIGKILL)


def alive(process: proctree.Process) -> bool:
    now = proctree.read(process.pid)
    return now is not None and now.key == process.key and now.alive
