"""The main job on the real engine: vLLM 0.29.0 for CPUs, a real model, from plan to audit.

Needs what `make reproduce` needs; installs the engine into .kit/ where it is not there yet.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kit.engine.setup import set_up
from kit.home import Home
from kit.hosts.names import LocalHost
from kit.planning.plan_file import load_plan
from kit.run.launch import build_harness
from records import schema
from records.errors import BootsFailedError
from records.run_directory import RunDirectory, runs_in

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

DYING_ARM = """
[[arms]]
id = "dies"
args = ["--tokenizer-mode", "nonsense"]
speculative_config = ""
factors = { speculation = "none, and an option the engine refuses" }
"""


def small_plan() -> str:
    """The smoke plan cut down to one block, its windows shortened, with an arm that cannot boot."""
    text = (ROOT / "kit" / "plans" / "smoke-cpu.toml").read_text()
    text = text.replace('id = "smoke-cpu"', 'id = "e2e"', 1).replace("blocks = 2", "blocks = 1")
    arms, windows = text.split("[window_defaults]", 1)
    none_arm = arms.index('[[arms]]\nid = "none"')
    windows = windows.replace("max_tokens = 64", "max_tokens = 24")
    windows = windows.replace("min_tokens = 64", "min_tokens = 24")
    return f"{arms[:none_arm]}{DYING_ARM}\n[window_defaults]{windows}"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run of the small plan, in places of its own, with the engine of this checkout."""
    place = tmp_path_factory.mktemp("kit")
    plan_file = place / "e2e.toml"
    plan_file.write_text(small_plan())
    shared = Home.find({})
    harness, digest = build_harness(shared)
    set_up(shared, LocalHost(), load_plan(plan_file), harness, digest, print)
    # Beside the records that the paper rests on: a further run must disturb none of them.
    shutil.copytree(ROOT / "records" / "data", place / "data")
    home = place / "home"
    home.mkdir()
    for part in (shared.engine, shared.models):
        (home / part.name).symlink_to(part)
    env = {
        **os.environ,
        "KIT_HOME": str(home),
        "KIT_HOST_LOCK": str(home / "host.lock"),  # a test beside it may measure, too
        "KIT_DATA": str(place / "data"),
        "KIT_OUT": str(place / "out"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "kit.main", "reproduce", "--plan", str(plan_file), "--json"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == BootsFailedError.exit_code, done.stdout + done.stderr
    return place, env, done


@pytest.fixture(scope="module")
def events(run):
    directory = new_run(run[0])
    assert directory.is_sealed
    return [envelope.event for envelope in directory.read()]


def new_run(place):
    (directory,) = (r for r in runs_in(place / "data") if "-e2e-" in r.path.name)
    return directory


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


def test_every_planned_boot_ended_and_the_dying_one_says_why(run, events):
    outcomes = {e.boot.split("-")[-1]: e for e in of(events, schema.BootEnded)}
    assert {arm: e.outcome for arm, e in outcomes.items()} == {
        "draft": "completed",
        "ngram": "completed",
        "dies": "failed",
    }
    assert "tokenizer_mode" in (outcomes["dies"].cause + outcomes["dies"].detail).replace("-", "_")
    assert outcomes["dies"].cause in run[2].stderr


def test_the_engine_is_the_locked_one_before_and_after(events):
    before, after = of(events, schema.EngineBound)
    assert (before.phase, after.phase) == ("before", "after")
    assert before.digest == after.digest
    assert {e.version for e in of(events, schema.EngineDecided)} == {"0.29.0"}


def test_windows_are_whole_and_valid(events):
    windows = of(events, schema.WindowEnded)
    assert len(windows) == 4
    for window in windows:
        assert window.report.completed == window.report.planned > 0
        assert not [reason for reason in window.void if not reason.startswith(("client-", "host-"))]


def test_server_and_client_agree_on_tokens_and_speculation(events):
    for window in of(events, schema.WindowEnded):
        mine = [
            request
            for batch in of(events, schema.WindowRequests)
            if (batch.boot, batch.window) == (window.boot, window.window)
            for request in batch.requests
        ]
        assert window.counters.generation_tokens == sum(sum(r.chunk_tokens) for r in mine)
        assert window.counters.drafts > 0
        assert window.counters.accepted_tokens == sum(sum(r.step_accepted) for r in mine)


def test_nothing_is_left_of_an_engine(events):
    for ended in of(events, schema.BootEnded):
        assert ended.stop["survivors"] == []
        assert ended.stop["clean"]["leaks"] == []


def test_the_harness_never_imported_an_engine(events):
    (ended,) = of(events, schema.RunEnded)
    assert not {"vllm", "torch", "transformers"} & set(ended.modules)


def test_the_audit_accepts_the_run(run):
    place, env, _ = run
    audit = subprocess.run(
        [sys.executable, "-m", "kit.main", "audit", "--data", str(place / "data"), "--json"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [f for f in json.loads(audit.stdout)["findings"] if f["severity"] == "error"]
    assert errors == []


def test_the_run_can_be_read_by_anyone(run):
    directory = new_run(run[0])
    assert RunDirectory(directory.path).verify_chain().lines > 20
