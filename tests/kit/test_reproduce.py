"""The main job for real, against the reference server: own processes, own signals, own records."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from called_kit import PATIENCE_S, CalledKit, alive, count, outcomes, tiny_plan
from sshd import wait_for

from records import schema
from records.checkpoint import RUNS_NAME, parse_runs
from records.errors import BootsFailedError, ChainError, InterruptedRunError


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[CalledKit]:
    kit = CalledKit(tmp_path)
    yield kit
    kit.end()


@pytest.fixture
def slow_kit(kit: CalledKit) -> CalledKit:
    """Windows of several seconds, so that a signal finds one open."""
    kit.plan.write_text(tiny_plan(requests=4))
    return kit


def test_a_plan_becomes_sealed_records_and_tables_marked_synthetic(kit: CalledKit) -> None:
    done = kit.reproduced("--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    run = kit.fetched_run()
    assert told["records"] == str(run.path)
    assert run.is_sealed
    assert list(run.verify_files()) == []
    assert outcomes(run) == ["completed", "completed"]
    leaves = parse_runs((run.path.parent / RUNS_NAME).read_text())
    assert [leaf.run_id for leaf in leaves] == [told["run_id"]]
    assert told["tables"]
    assert all(Path(path).is_relative_to(kit.out / "demo") for path in told["tables"])
    assert any("SYNTHETIC" in Path(p).read_text() for p in told["tables"] if p.endswith(".md"))
    assert not kit.data.exists()


def test_a_second_call_adds_a_second_run(kit: CalledKit) -> None:
    first = json.loads(kit.reproduced("--json").stdout)
    second = json.loads(kit.reproduced("--json").stdout)
    assert first["run_id"] < second["run_id"] or first["run_id"] != second["run_id"]
    leaves = parse_runs((kit.out / "demo" / "records" / RUNS_NAME).read_text())
    assert [leaf.run_id for leaf in leaves] == [first["run_id"], second["run_id"]]


def test_a_killed_harness_is_resumed_and_the_boot_that_died_is_a_record(
    slow_kit: CalledKit,
) -> None:
    process = slow_kit.reproducing()
    slow_kit.wait_for_event("window.started")
    os.kill(slow_kit.job_pid(), signal.SIGKILL)
    _, shown = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == InterruptedRunError.exit_code
    assert "ended by SIGKILL" in shown
    (run,) = slow_kit.runs()
    assert f"try: kit reproduce --run {run.path.name}" in shown
    slow_kit.plan.unlink()  # the job holds the plan
    done = slow_kit.call("reproduce", "--run", run.path.name.lower()[:18], "--json")
    assert done.returncode == 0, done.stderr
    assert "resuming unfinished run" in done.stderr
    assert outcomes(slow_kit.fetched_run()) == ["interrupted", "completed", "completed"]


def test_a_torn_last_line_is_named_when_the_run_is_resumed(slow_kit: CalledKit) -> None:
    process = slow_kit.reproducing()
    slow_kit.wait_for_event("window.started")
    os.kill(slow_kit.job_pid(), signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    (run,) = slow_kit.runs()
    with run.events.open("ab") as file:
        file.write(b'{"prev":"sha256:')
    done = slow_kit.reproduced("--json")
    assert done.returncode == 0, done.stderr
    assert "a torn last line of 16 bytes was cut off and recorded" in done.stderr
    assert count(slow_kit.fetched_run(), schema.JournalRepaired) == 1


def test_a_run_that_ended_while_nobody_watched_is_brought_home_not_done_again(
    kit: CalledKit,
) -> None:
    begun = kit.call("run", "--plan", str(kit.plan), "--detach")
    assert begun.returncode == 0, begun.stderr
    wait_for(lambda: any(run.is_sealed for run in kit.runs()))
    done = kit.reproduced("--json")
    assert done.returncode == 0, done.stderr
    assert "has ended meanwhile: bringing it home" in done.stderr
    assert json.loads(done.stdout)["run_id"] == begun.stdout.strip() == kit.fetched_run().path.name
    assert len(kit.runs()) == 1
    assert kit.reproduced("--json").returncode == 0
    assert len(kit.runs()) == 2, "what is home is home: the same command measures again"


def test_ctrl_c_marks_the_boot_and_leaves_the_run_resumable(slow_kit: CalledKit) -> None:
    process = slow_kit.reproducing()
    slow_kit.wait_for_event("window.started")
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == InterruptedRunError.exit_code, shown
    assert "0 of 2 boots done" in shown
    assert "try: kit reproduce --run " in shown
    assert not alive(slow_kit.job_pid())
    (run,) = slow_kit.runs()
    assert outcomes(run) == ["interrupted"]
    status = slow_kit.call("status", "--json")
    assert json.loads(status.stdout)[0]["state"] == "interrupted"
    assert "stopped by SIG" in json.loads(status.stdout)[0]["error"]
    assert slow_kit.reproduced("--json").returncode == 0


def test_a_failed_boot_is_shown_with_its_cause_and_the_plan_goes_on(kit: CalledKit) -> None:
    old = 'args = ["--gap", "constant:10ms", "--tokens", "1"]'
    assert old in kit.plan_text
    kit.plan.write_text(kit.plan_text.replace(old, 'args = ["--fail-boot"]'))
    done = kit.reproduced("--json")
    assert done.returncode == BootsFailedError.exit_code, done.stderr
    assert "synthetic boot failure" in done.stderr
    assert "1 of 2 boots failed" in done.stderr
    run = kit.fetched_run()
    assert run.is_sealed
    assert sorted(outcomes(run)) == ["completed", "failed"]
    assert "synthetic boot failure" in kit.call("status", run.path.name).stdout


def test_a_detached_run_goes_on_is_attached_to_and_can_be_stopped(slow_kit: CalledKit) -> None:
    plan = str(slow_kit.plan)
    begun = slow_kit.call("run", "--plan", plan, "--detach")
    assert begun.returncode == 0, begun.stderr
    slow_kit.wait_for_event("window.started")
    assert slow_kit.call("stop").returncode == 0
    assert not alive(slow_kit.job_pid())
    assert slow_kit.call("run", "--plan", plan, "--detach").stdout == begun.stdout
    slow_kit.wait_for_event("run.resumed")
    done = slow_kit.reproduced("--json")
    assert done.returncode == 0, done.stderr
    assert "attaching" in done.stderr
    assert json.loads(done.stdout)["run_id"] == begun.stdout.strip()
    assert "sealed" in slow_kit.call("logs").stdout
    assert slow_kit.call("fetch-records", "--json").returncode == 0


def test_a_corrupted_run_is_refused_and_a_new_one_may_be_asked_for(slow_kit: CalledKit) -> None:
    process = slow_kit.reproducing()
    slow_kit.wait_for_event("window.started")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    (run,) = slow_kit.runs()
    honest = run.events.read_bytes()
    run.events.write_bytes(honest.replace(b'"port":', b'"pOrt":', 1))
    refused = slow_kit.reproduced("--json")
    assert refused.returncode == ChainError.exit_code, refused.stderr
    assert "events.jsonl" in refused.stderr or "line " in refused.stderr
    new = slow_kit.reproduced("--json", "--new")
    assert new.returncode == 0, new.stderr
    assert "giving up unfinished run" in new.stderr
    assert len(slow_kit.runs()) == 2
    assert slow_kit.reproduced("--json").returncode == 0
    assert len(slow_kit.runs()) == 3
