"""A run on a host over SSH, or on several: what travels, what is kept, what comes home."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from called_kit import blocks_of, outcomes, tiny_plan
from ssh_kit import SshKit, harness_pid, name_of, runs_on, wait_for_event
from sshd import Sshd, children, running, wait_for

from records import schema
from records.errors import HostsFailedError

pytestmark = pytest.mark.timeout(300)

TOKEN = "hf_ThisTokenMustNeverBeSeenAnywhere01"


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
