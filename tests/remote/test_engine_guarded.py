"""A harness killed at any moment of an engine's life leaves nothing of the engine behind.

The harness is a real process that SIGKILL ends; the test adopts what it leaves, and so sees all of
it end. A wait in vain is ended by the test's own time limit.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from records.errors import DiskFullError, HostUnfitError
from remote.engine import process, proctree
from remote.engine.guarded import Guarded
from remote.engine.ports import free_port
from remote.engine.proctree import Process
from remote.host.sample import GpuSampler

ROOT = Path(__file__).parents[2]
SERVER = Path(__file__).with_name("engine_server.py")

HARNESS = f"""
import os, signal, sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from remote.engine import process

moment, port, place = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])

def remember(key):
    if moment == "remembering":
        os.kill(os.getpid(), signal.SIGKILL)
    (place / "remembered").write_text(str(key[0]))

argv = (sys.executable, {str(SERVER)!r}, "children", str(port))
engine = process.start(
    argv, dict(os.environ), place / "boot.log", place, ("127.0.0.1", port), remember
)
if moment == "forked" and os.fork() == 0:
    time.sleep(600)
if moment in ("started", "forked"):
    os.kill(os.getpid(), signal.SIGKILL)
print("up", flush=True)
time.sleep(600)
"""

STUBBORN = "trap '' TERM; echo up; while :; do sleep 1; done"

Left = Callable[[], list[Process]]


@pytest.fixture
def left() -> Iterator[Left]:
    """What is alive below this process and was not before: a killed harness's is adopted here."""
    proctree.adopt_orphans()
    before = {one.key for one in below(os.getpid())}

    def now() -> list[Process]:
        return [one for one in below(os.getpid()) if one.key not in before]

    yield now
    for one in now():
        os.kill(one.pid, signal.SIGKILL)


def below(pid: int) -> list[Process]:
    """All that is alive below a process."""
    processes = proctree.snapshot()
    found = {pid}
    while more := {p.pid for p in processes.values() if p.parent in found} - found:
        found |= more
    return [p for p in processes.values() if p.pid in found - {pid} and p.alive]


def harness(moment: str, place: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", HARNESS, moment, str(free_port()), str(place)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def wait_for_none(left: Left) -> None:
    while left():
        time.sleep(0.02)


def all_children_started(log: Path) -> bool:
    return log.exists() and log.read_text().count("child ") == 3


def test_killed_before_the_engine_is_remembered_nothing_of_it_ran(
    tmp_path: Path, left: Left
) -> None:
    with harness("remembering", tmp_path) as killed:
        assert killed.wait() == -signal.SIGKILL
    wait_for_none(left)
    assert (tmp_path / "boot.log").read_bytes() == b""
    assert not (tmp_path / "remembered").exists()


def test_killed_as_the_engine_starts_it_ends(tmp_path: Path, left: Left) -> None:
    with harness("started", tmp_path) as killed:
        assert killed.wait() == -signal.SIGKILL
    wait_for_none(left)
    assert (tmp_path / "remembered").exists()


def test_a_process_that_the_harness_forked_keeps_no_engine_alive(
    tmp_path: Path, left: Left
) -> None:
    """A worker of the client, say, that is busy when the harness is killed."""
    with harness("forked", tmp_path) as killed:
        assert killed.wait() == -signal.SIGKILL
    forked = [one for one in left() if one.session == os.getsid(0)]
    assert len(forked) == 1
    while left() != forked and left():
        time.sleep(0.02)
    assert [one.key for one in left()] == [one.key for one in forked]


def test_killed_later_all_ends_that_the_engine_had_started(tmp_path: Path, left: Left) -> None:
    """Children that ignore SIGINT, that left the session, that are orphans."""
    with harness("later", tmp_path) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "up\n"
        while not all_children_started(tmp_path / "boot.log"):
            time.sleep(0.02)
        assert len(below(killed.pid)) >= 5, "the guard, the engine, and its three"
        killed.kill()
    wait_for_none(left)


def test_an_engine_killed_together_with_the_whole_job_ends_too(tmp_path: Path, left: Left) -> None:
    """Whoever cancels a job signals all of its processes: the guard outlives that."""
    with harness("later", tmp_path) as killed:
        assert killed.stdout is not None
        killed.stdout.readline()
        while not all_children_started(tmp_path / "boot.log"):
            time.sleep(0.02)
        for one in below(killed.pid):
            os.kill(one.pid, signal.SIGTERM)
        killed.kill()
    wait_for_none(left)


def engine_in(place: Path, mode: str) -> process.EngineProcess:
    port = free_port()
    argv = (sys.executable, str(SERVER), mode, str(port))
    return process.start(argv, dict(os.environ), place / "boot.log", place, ("127.0.0.1", port))


def test_no_process_stays_after_a_stop(tmp_path: Path, left: Left) -> None:
    engine = engine_in(tmp_path, "children")
    while not all_children_started(tmp_path / "boot.log"):
        time.sleep(0.02)
    assert not process.stop(engine, grace_ns=0).survivors
    assert left() == []
    assert engine.exit_status() is not None


def test_a_guard_that_is_killed_leaves_an_engine_that_can_be_stopped(
    tmp_path: Path, left: Left
) -> None:
    engine = engine_in(tmp_path, "silent")
    (guard,) = [p for p in left() if p.pid != engine.pid]
    os.kill(guard.pid, signal.SIGKILL)
    while next(p for p in left() if p.pid == engine.pid).parent != os.getpid():
        time.sleep(0.02)
    while b"loading" not in (tmp_path / "boot.log").read_bytes():
        time.sleep(0.02)
    assert engine.exit_status() is None
    report = process.stop(engine)
    assert not report.survivors
    assert not report.already_dead
    assert report.exit_status == -signal.SIGINT
    assert left() == []


@pytest.mark.parametrize(
    ("python", "told"),
    [("/bin/false", "ended with status 1"), ("/nowhere/python", "cannot start .* No such file")],
)
def test_a_guard_that_cannot_be_had_is_the_hosts_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str, told: str
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    with pytest.raises(HostUnfitError, match=told):
        engine_in(tmp_path, "silent")


@pytest.mark.parametrize(
    "cause", [OSError(errno.EIO, "no space left"), DiskFullError("no space left")]
)
def test_an_engine_that_cannot_be_remembered_is_let_go_and_the_cause_is_told(
    tmp_path: Path, left: Left, cause: Exception
) -> None:
    def remember(_key: tuple[int, int]) -> None:
        raise cause

    with pytest.raises(type(cause), match="no space left"):
        process.start(
            ("/bin/sleep", "600"), dict(os.environ), tmp_path / "log", tmp_path, None, remember
        )
    assert left() == []


def test_what_interrupts_the_start_leaves_no_guard(
    tmp_path: Path, left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_self: Guarded) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Guarded, "_hear", interrupted)
    with (tmp_path / "log").open("wb") as log, pytest.raises(KeyboardInterrupt) as caught:
        Guarded(("/bin/sleep", "600"), os.environ, tmp_path, log)
    assert caught  # and with it the frame that holds the pipe
    wait_for_none(left)


def test_a_program_that_ignores_sigterm_ends_also_without_its_guard(
    tmp_path: Path, left: Left
) -> None:
    said = tmp_path / "log"
    with said.open("wb") as log:
        stubborn = Guarded(("/bin/sh", "-c", STUBBORN), os.environ, tmp_path, log)
    stubborn.go()
    (guard,) = [one for one in left() if one.pid == stubborn.keeper]
    os.kill(guard.pid, signal.SIGKILL)
    while not said.read_bytes():
        time.sleep(0.02)
    stubborn.terminate(0.1)
    assert stubborn.exit_status() == -signal.SIGKILL
    wait_for_none(left)


def test_the_samplers_processes_are_none_of_the_engines(tmp_path: Path) -> None:
    engine = process.start(("/bin/sleep", "600"), dict(os.environ), tmp_path / "log", tmp_path)
    sampler = GpuSampler(tmp_path / "samples", program=("/bin/sh", "-c", "exec sleep 600"))
    assert [one.pid for one in engine.members()] == [engine.pid]
    sampler.stop()
    report = process.stop(engine)
    assert (report.signals, report.processes_seen) == (("SIGINT",), 1)


def test_the_engine_has_the_environment_it_is_given_and_no_other(tmp_path: Path) -> None:
    env = {"ONE": "1", "ODD": "\udcff=ü"}
    engine = process.start(("/usr/bin/env", "-0"), env, tmp_path / "boot.log", tmp_path)
    while engine.exit_status() is None:
        time.sleep(0.02)
    process.stop(engine)
    said = dict(
        line.split(b"=", 1) for line in (tmp_path / "boot.log").read_bytes().split(b"\0") if line
    )
    assert said == {b"ONE": b"1", b"ODD": b"\xff=\xc3\xbc"}
