"""A run on a host over SSH: it does not need the line, the laptop or the terminal to go on."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from called_kit import alive, count, outcomes, tiny_plan
from ssh_kit import SshKit, harness_pid, name_of, runs_on, wait_for_event
from sshd import Sshd, children, wait_for

from records import schema
from records.errors import InterruptedRunError

pytestmark = pytest.mark.timeout(300)


def kill_tree(pid: int) -> None:
    for child in children(pid):
        kill_tree(child)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


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
