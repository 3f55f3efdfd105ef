"""A run on a host over SSH: it does not need the line, the laptop or the terminal to go on."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from called_kit import alive, blocks_of, count, outcomes, tiny_plan
from ssh_kit import SshKit, harness_pid, name_of, runs_on, wait_for_event
from sshd import Sshd, children, running, wait_for

from records import schema
from records.errors import HostsFailedError, InterruptedRunError

pytestmark = pytest.mark.timeout(300)

TOKEN = "hf_ThisTokenMustNeverBeSeenAnywhere01"


@pytest.fixture
def slow(kit: SshKit) -> SshKit:
    """Windows of several seconds, so that what happens meets an open one."""
    kit.plan.write_text(tiny_plan(requests=5))
    return kit


def kill_tree(pid: int) -> None:
    for child in children(pid):
        kill_tree(child)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def everything_below(*directories: Path) -> list[tuple[Path, bytes]]:
    files = (p for d in directories for p in d.rglob("*") if p.is_file() and not p.is_symlink())
    return [(path, path.read_bytes()) for path in files]


def test_a_plan_runs_there_and_its_records_are_here(sshd: Sshd, kit: SshKit) -> None:
    done = kit.call(*kit.reproduce(name_of(sshd)), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (run,) = kit.fetched()
    assert told["records"] == str(run.path)
    steps = {step["step"]: step["took_ns"] for step in told["first_window_after"]}
    assert next(iter(steps)) == "reach the host"
    assert {"examine the host", "bring the harness", "engine boots", "warm up"} <= steps.keys()
    assert "first window after" in done.stderr
    assert run.is_sealed
    assert list(run.verify_files()) == []
    assert outcomes(run) == ["completed", "completed"]
    (theirs,) = runs_on(sshd)
    assert theirs.events.read_bytes() == run.events.read_bytes()
    again = kit.call("fetch-records", "--host", name_of(sshd), "--json")
    assert json.loads(again.stdout)[0]["new_bytes"] == 0
    assert "sealed" in kit.call("logs", "--host", name_of(sshd)).stdout
    asked = kit.call("fetch-records", "--host", name_of(sshd), "--delete-remote")
    assert asked.returncode == 0, asked.stderr
    assert runs_on(sshd) == []
    assert list(run.verify_files()) == []
    gone = kit.call("fetch-records", "--host", name_of(sshd), "--json")
    assert json.loads(gone.stdout) == []
    assert "no longer on" in gone.stderr
    (told,) = json.loads(kit.call("status", "--host", name_of(sshd), "--json").stdout)
    assert told["state"] == "sealed"


def test_names_addresses_and_tokens_are_nowhere_in_what_is_kept(sshd: Sshd, slow: SshKit) -> None:
    slow.extra["HF_TOKEN"] = TOKEN
    process = slow.start(*slow.reproduce(name_of(sshd)))
    wait_for_event(sshd, "window.started")
    pids = [harness_pid(sshd), *children(harness_pid(sshd))]
    for pid in [*pids, process.pid]:
        assert TOKEN.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    for pid in pids:
        assert TOKEN.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    out, shown = process.communicate(timeout=120)
    assert process.returncode == 0, shown
    assert TOKEN not in out + shown
    for path, data in everything_below(slow.place, sshd.home):
        assert TOKEN.encode() not in data, path
    (run,) = slow.fetched()
    for path, data in everything_below(run.path):
        assert name_of(sshd).encode() not in data, path
        assert str(sshd.port).encode() + b'"' not in data, path
        assert str(sshd.home).encode() not in data, path


def test_the_token_does_not_reach_a_harness_on_this_machine_either(slow: SshKit) -> None:
    slow.extra["HF_TOKEN"] = TOKEN
    begun = slow.call("run", "--plan", str(slow.plan), "--detach")
    assert begun.returncode == 0, begun.stderr
    (note,) = (slow.home / "jobs").glob("*.pid")
    assert TOKEN.encode() not in Path(f"/proc/{int(note.read_text())}/environ").read_bytes()
    assert slow.call("stop").returncode == 0


def test_two_addresses_of_one_machine_are_two_hosts_in_the_records(
    sshd: Sshd, kit: SshKit, tmp_path: Path, user_home: Path
) -> None:
    with running(tmp_path / "other", user_home / ".ssh" / "id_ed25519.pub") as other:
        for host in (sshd, other):
            done = kit.call(*kit.reproduce(name_of(host)))
            assert done.returncode == 0, done.stderr
    ids = [
        {e.event.host_id for e in run.read() if isinstance(e.event, schema.HostObserved)}
        for run in kit.fetched()
    ]
    assert [len(one) for one in ids] == [1, 1]
    assert ids[0] != ids[1]


def test_a_detached_run_is_seen_followed_attached_to_and_stopped(
    sshd: Sshd, slow: SshKit, user_home: Path
) -> None:
    slow.plan.write_text(tiny_plan(requests=14))
    host = ("--host", name_of(sshd))
    begun = slow.call("run", "--plan", str(slow.plan), "--detach", "--accept-new", *host)
    assert begun.returncode == 0, begun.stderr
    wait_for_event(sshd, "window.started")
    (told,) = json.loads(slow.call("status", "--json", *host).stdout)
    assert (told["state"], told["done"], told["total"]) == ("measuring", 0, 2)
    assert told["window"] == "c1"
    assert told["left_s"] > 0
    follower = slow.start("logs", "-f", *host)
    stopped = slow.call("stop", *host)
    assert stopped.returncode == 0, stopped.stderr
    assert not alive(harness_pid(sshd))
    log, _ = follower.communicate(timeout=60)
    assert "boot b01-1" in log
    (told,) = json.loads(slow.call("status", "--json", *host).stdout)
    assert told["state"] == "interrupted"
    again = slow.call("run", "--plan", str(slow.plan), "--detach", *host)
    assert again.stdout == begun.stdout
    wait_for_event(sshd, "run.resumed")
    another = SshKit(slow.place.parent / "another", user_home, slow.plan.read_text())
    done = another.call(*another.reproduce(name_of(sshd)), "--json")
    assert done.returncode == 0, done.stderr
    assert "attaching" in done.stderr
    assert json.loads(done.stdout)["run_id"] == begun.stdout.strip()
    (run,) = another.fetched()
    assert outcomes(run) == ["interrupted", "completed", "completed"]


def test_a_line_cut_ten_times_at_random_changes_nothing_of_the_run(
    sshd: Sshd, slow: SshKit
) -> None:
    slow.plan.write_text(tiny_plan(requests=8))
    process = slow.start(*slow.reproduce(name_of(sshd)))
    wait_for((slow.home / "known_hosts").exists)
    seed = time.time_ns()
    moments = random.Random(seed)
    cuts = 0
    while cuts < 10 and process.poll() is None:
        time.sleep(moments.uniform(0.05, 1.5))
        cuts += sshd.cut() > 0
    _, shown = process.communicate(timeout=240)
    assert process.returncode == 0, f"seed {seed}\n{shown}"
    assert cuts >= 5, f"seed {seed}: only {cuts} cuts met a connection"
    (run,) = slow.fetched()
    assert outcomes(run) == ["completed", "completed"]
    assert count(run, schema.RunStarted) == 1
    assert count(run, schema.RunResumed) == 0


def test_a_laptop_that_dies_leaves_the_run_alone(sshd: Sshd, slow: SshKit) -> None:
    slow.plan.write_text(tiny_plan(requests=9))  # it must still be under way at the second call
    process = slow.start(*slow.reproduce(name_of(sshd)))
    wait_for_event(sshd, "window.started")
    process.kill()
    process.communicate()
    pid = harness_pid(sshd)
    assert alive(pid)
    done = slow.call(*slow.reproduce(name_of(sshd)))
    assert done.returncode == 0, done.stderr
    assert harness_pid(sshd) == pid
    (run,) = slow.fetched()
    assert count(run, schema.RunResumed) == 0


def test_ctrl_c_stops_the_run_there_in_order(sshd: Sshd, slow: SshKit) -> None:
    process = slow.start(*slow.reproduce(name_of(sshd)))
    wait_for_event(sshd, "window.started")
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=120)
    assert process.returncode == InterruptedRunError.exit_code, shown
    assert not alive(harness_pid(sshd))
    (run,) = runs_on(sshd)
    assert outcomes(run) == ["interrupted"]


def test_a_killed_harness_is_told_and_resumed(sshd: Sshd, slow: SshKit) -> None:
    process = slow.start(*slow.reproduce(name_of(sshd)))
    wait_for_event(sshd, "window.started")
    os.kill(harness_pid(sshd), signal.SIGKILL)
    _, shown = process.communicate(timeout=120)
    assert process.returncode == InterruptedRunError.exit_code, shown
    assert "ended by SIGKILL" in shown
    with next(iter(runs_on(sshd))).events.open("ab") as file:
        file.write(b'{"prev":"sha256:')
    done = slow.call(*slow.reproduce(name_of(sshd)))
    assert done.returncode == 0, done.stderr
    assert "resuming unfinished run" in done.stderr
    assert "torn last line of 16 bytes" in done.stderr
    (run,) = slow.fetched()
    assert outcomes(run) == ["interrupted", "completed", "completed"]


def test_a_host_that_reboots_loses_a_boot_and_no_record(sshd: Sshd, slow: SshKit) -> None:
    process = slow.start(*slow.reproduce(name_of(sshd)))
    wait_for_event(sshd, "window.started")
    pid = harness_pid(sshd)
    (supervisor,) = [int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])]
    os.kill(supervisor, signal.SIGKILL)  # with the host goes who would have noted the status
    kill_tree(pid)
    sshd.cut()
    sshd.stop()
    time.sleep(1)
    sshd.start()
    _, shown = process.communicate(timeout=120)
    assert process.returncode == InterruptedRunError.exit_code, shown
    assert "gone without a seal" in shown
    done = slow.call(*slow.reproduce(name_of(sshd)))
    assert done.returncode == 0, done.stderr
    (run,) = slow.fetched()
    assert outcomes(run) == ["interrupted", "completed", "completed"]


def test_without_rsync_the_records_come_by_sftp_and_it_is_said(
    sshd: Sshd, kit: SshKit, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("ssh", "python3", "env", "sh"):
        (tools / name).symlink_to(shutil.which(name) or "")
    kit.extra["PATH"] = str(tools)
    done = kit.call(*kit.reproduce(name_of(sshd)))
    assert done.returncode == 0, done.stderr
    assert "no rsync on this machine: copying by SFTP" in done.stderr
    (run,) = kit.fetched()
    assert run.is_sealed


def test_blocks_are_shared_by_hosts_and_one_that_fails_stops_no_other(
    sshd: Sshd, kit: SshKit, tmp_path: Path, user_home: Path
) -> None:
    kit.plan.write_text(tiny_plan(blocks=3, tokens=40))
    public = user_home / ".ssh" / "id_ed25519.pub"
    with running(tmp_path / "b", public) as second, running(tmp_path / "c", public) as third:
        third.cut()
        third.stop()
        done = kit.call(*kit.reproduce(*map(name_of, (sshd, second, third))), "--json")
        assert done.returncode == HostsFailedError.exit_code, done.stderr
        assert f"{name_of(third)} (blocks 3)" in done.stderr
        assert f"--blocks 3 --host {name_of(third)}" in done.stderr
        assert len(json.loads(done.stdout)) == 2
        taken_over = kit.call(*kit.reproduce(name_of(second)), "--blocks", "3")
        assert taken_over.returncode == 0, taken_over.stderr
    blocks = sorted(blocks_of(run) for run in kit.fetched())
    assert blocks == [(1,), (2,), (3,)]
    assert all(run.is_sealed for run in kit.fetched())
    assert all(outcomes(run) == ["completed", "completed"] for run in kit.fetched())


def test_the_audit_takes_a_run_of_some_blocks_as_whole(
    sshd: Sshd, kit: SshKit, tmp_path: Path
) -> None:
    kit.plan.write_text(tiny_plan(blocks=2, tokens=40))
    done = kit.call(*kit.reproduce(name_of(sshd)), "--blocks", "2")
    assert done.returncode == 0, done.stderr
    audit = kit.call("audit", "--data", str(kit.records), "--json")
    found = json.loads(audit.stdout)["findings"]
    errors = [f for f in found if f["severity"] == "error"]
    assert [f for f in errors if f["code"].startswith(("COVER", "CHAIN", "SEAL"))] == []


def test_nothing_is_left_running_of_a_host(sshd: Sshd, kit: SshKit) -> None:
    done = kit.call(*kit.reproduce(name_of(sshd)))
    assert done.returncode == 0, done.stderr
    wait_for(lambda: sshd.sessions() == [])
    found = subprocess.run(
        ["pgrep", "-f", str(sshd.home)], capture_output=True, text=True, check=False
    )
    assert found.stdout == ""
