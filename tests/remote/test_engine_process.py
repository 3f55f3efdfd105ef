"""Real little servers are started, stopped and left in every bad way an engine knows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from records.errors import EngineBootError, EngineLeakError, PortInUseError
from remote.engine import clean, ports, process, proctree

SERVER = Path(__file__).with_name("engine_server.py")
HOST = "127.0.0.1"
SECOND_NS = 1_000_000_000

Boot = Callable[..., process.EngineProcess]


@pytest.fixture
def boot(tmp_path: Path) -> Iterator[Boot]:
    started: list[process.EngineProcess] = []

    def start(mode: str, port: int, name: str = "boot.log") -> process.EngineProcess:
        argv = (sys.executable, str(SERVER), mode, str(port))
        engine = process.start(argv, dict(os.environ), tmp_path / name, tmp_path, (HOST, port))
        started.append(engine)
        return engine

    yield start
    for engine in started:
        process.stop(engine, grace_ns=0)


def wait(engine: process.EngineProcess, port: int, seconds: int = 30) -> process.Healthy:
    return process.wait_healthy(engine, (HOST, port), "/health", seconds * SECOND_NS, 20_000_000)


def test_a_healthy_engine_stops_on_sigint_alone(boot: Boot) -> None:
    port = ports.free_port()
    engine = boot("plain", port)
    assert wait(engine, port).took_ns > 0
    assert not ports.port_is_free(HOST, port)
    report = process.stop(engine)
    assert report.signals == ("SIGINT",)
    assert report.exit_status == 0
    assert not report.already_dead
    assert not report.survivors
    assert "shutdown" in engine.log_path.read_text()
    assert clean.prove_clean(engine, (HOST, port)).is_clean


def test_the_engine_has_a_session_of_its_own(boot: Boot) -> None:
    port = ports.free_port()
    engine = boot("plain", port)
    wait(engine, port)
    assert os.getsid(engine.pid) == engine.pid != os.getsid(0)


def test_not_ready_yet_is_polled_until_it_is(boot: Boot) -> None:
    port = ports.free_port()
    assert wait(boot("slow", port), port).attempts >= 4


def test_death_at_boot_tells_the_cause_and_the_last_lines(boot: Boot) -> None:
    port = ports.free_port()
    engine = boot("die", port)
    with pytest.raises(EngineBootError) as caught:
        wait(engine, port)
    assert "exit status 3: ValueError: no such dtype" in caught.value.message
    assert "Engine core initialization failed" in caught.value.message
    report = process.stop(engine)
    assert report.already_dead
    assert report.signals == ()
    assert report.exit_status == 3


def test_death_by_signal_is_told_as_such(boot: Boot) -> None:
    port = ports.free_port()
    engine = boot("silent", port)
    os.kill(engine.pid, signal.SIGKILL)
    with pytest.raises(EngineBootError, match="by signal 9"):
        wait(engine, port)


def test_an_engine_that_never_answers_is_given_up(boot: Boot) -> None:
    port = ports.free_port()
    engine = boot("silent", port)
    with pytest.raises(EngineBootError, match="did not become healthy within 0 s"):
        wait(engine, port, seconds=0)
    assert engine.exit_status() is None


def test_a_deaf_engine_is_killed_after_the_grace_period(boot: Boot) -> None:
    port = ports.free_port()
    engine = boot("deaf", port)
    wait(engine, port)
    report = process.stop(engine, grace_ns=SECOND_NS // 5)
    assert report.signals == ("SIGINT", "SIGKILL")
    assert report.exit_status == -signal.SIGKILL
    assert not report.survivors
    assert process.stop(engine).signals == ()


def children(engine: process.EngineProcess) -> list[int]:
    """The three that mode `children` starts, once all have said so."""
    for _ in range(1500):
        lines = engine.log_path.read_text().split("\n")[:-1]
        pids = [int(line.split()[1]) for line in lines if line.startswith("child ")]
        if len(pids) == 3:
            return pids
        time.sleep(0.02)
    raise AssertionError(engine.log_path.read_text())


def test_children_that_ignore_sigint_or_left_the_session_go_too(boot: Boot) -> None:
    port = ports.free_port()
    engine = boot("children", port)
    wait(engine, port)
    started = children(engine)
    assert {p.pid for p in engine.members()} >= {engine.pid, *started}
    report = process.stop(engine, grace_ns=SECOND_NS // 2)
    assert report.signals == ("SIGINT", "SIGKILL")
    assert report.exit_status == 0
    assert report.processes_seen >= 4
    assert not report.survivors
    left = [proctree.read(pid) for pid in started]
    assert not [p for p in left if p is not None and p.alive]


def test_children_of_a_killed_server_are_found(boot: Boot) -> None:
    port = ports.free_port()
    engine = boot("children", port)
    wait(engine, port)
    started = children(engine)
    os.kill(engine.pid, signal.SIGKILL)
    while engine.exit_status() is None:
        time.sleep(0.02)
    leak = clean.prove_clean(engine, (HOST, port), timeout_ns=0)
    assert len(leak.leaks) == len(started)
    with pytest.raises(EngineLeakError, match="process python"):
        clean.require_clean(leak)
    assert not process.stop(engine, grace_ns=0).survivors
    assert clean.prove_clean(engine, (HOST, port)).is_clean


def test_processes_of_others_are_left_alone(boot: Boot, tmp_path: Path) -> None:
    first, second = ports.free_port(), ports.free_port()
    one = boot("plain", first, "one.log")
    two = boot("plain", second, "two.log")
    wait(one, first)
    wait(two, second)
    process.stop(two, grace_ns=5 * SECOND_NS)
    assert one.exit_status() is None


def test_a_port_in_use_names_who_holds_it(boot: Boot) -> None:
    port = ports.free_port()
    engine = boot("plain", port)
    wait(engine, port)
    with pytest.raises(PortInUseError, match=rf"port {port} .* \(pid {engine.pid}\)"):
        boot("plain", port, "second.log")


def test_a_port_still_held_after_the_stop_is_a_leak(boot: Boot) -> None:
    port, other = ports.free_port(), ports.free_port()
    holder = boot("plain", port, "holder.log")
    wait(holder, port)
    engine = boot("plain", other)
    process.stop(engine)
    report = clean.prove_clean(engine, (HOST, port), timeout_ns=0)
    assert [leak for leak in report.leaks if f"port {port} held by" in leak]
    assert not report.is_clean


def test_a_program_that_is_not_there_is_a_boot_error(tmp_path: Path) -> None:
    with pytest.raises(EngineBootError, match="cannot start the engine"):
        process.start((str(tmp_path / "absent"),), {}, tmp_path / "a.log", tmp_path)


def test_a_log_holds_one_boot(tmp_path: Path) -> None:
    log = tmp_path / "boot.log"
    log.write_text("first boot\n")
    with pytest.raises(EngineBootError, match="log"):
        process.start((sys.executable, "-c", ""), {}, log, tmp_path)
    assert log.read_text() == "first boot\n"


def test_an_ignored_interrupt_does_not_reach_the_engine(boot: Boot) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        port = ports.free_port()
        engine = boot("plain", port)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        wait(engine, port)
        assert process.stop(engine).signals == ("SIGINT",)
    finally:
        signal.signal(signal.SIGINT, before)


def test_whoever_else_answers_on_the_port_is_not_taken_for_the_engine(tmp_path: Path) -> None:
    port = ports.free_port()
    # An engine that never listens; a stranger takes its port after it was started.
    argv = (sys.executable, "-c", "import time; time.sleep(600)")
    engine = process.start(argv, dict(os.environ), tmp_path / "idle.log", tmp_path, (HOST, port))
    stranger = subprocess.Popen(
        (sys.executable, str(SERVER), "plain", str(port)), stdout=subprocess.DEVNULL
    )
    try:
        with pytest.raises(PortInUseError, match=rf"pid {stranger.pid}\) listens there"):
            wait(engine, port)
    finally:
        process.stop(engine, grace_ns=0)
        stranger.kill()
        stranger.wait()


def test_a_death_while_serving_tells_how_and_the_last_lines(boot: Boot) -> None:
    port = ports.free_port()
    engine = boot("plain", port)
    wait(engine, port)
    os.killpg(engine.pid, signal.SIGKILL)
    error = process.died(engine, "in window c8")
    assert "ended by signal 9 in window c8" in error.message
    assert "last lines of its log" in error.message
