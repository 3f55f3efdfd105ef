"""What a killed harness left running is ended on resume; nobody else's process is."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from remote import leftover
from remote.engine import proctree

ENGINE = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def engine():
    process = subprocess.Popen(
        [sys.executable, "-c", ENGINE], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    child = int(process.stdout.readline())
    yield process, child
    process.kill()
    process.wait()
    process.stdout.close()


def note(scratch, pid, start_ticks):
    (scratch / "engine.json").write_text(json.dumps({"pid": pid, "start_ticks": start_ticks}))


def is_alive(pid):
    found = proctree.read(pid)
    return found is not None and found.alive


def test_the_engine_and_its_children_are_ended(engine, tmp_path):
    process, child = engine
    note(tmp_path, process.pid, proctree.read(process.pid).start_ticks)
    assert leftover.end(tmp_path) == 2
    process.wait()
    for _ in range(100):
        if not is_alive(child):
            break
        time.sleep(0.05)
    assert not is_alive(child)
    assert not (tmp_path / "engine.json").exists()


def test_whoever_was_given_the_pid_afterwards_is_left_alone(engine, tmp_path):
    process, child = engine
    note(tmp_path, process.pid, proctree.read(process.pid).start_ticks - 1)
    assert leftover.end(tmp_path) == 0
    assert process.poll() is None
    assert is_alive(child)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\0" * 40,
        b"\xff",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b'{"pid": null, "start_ticks": 1}',
        b'{"pid": 0, "start_ticks": 0}',
        b'{"pid": -1, "start_ticks": 0}',
        b'{"pid": 1, "start_ticks": 0}',
        b'{"pid": 1e400, "start_ticks": 0}',
        b'{"pid": 1%s, "start_ticks": 0}' % (b"0" * 300),
    ],
)
def test_a_note_that_a_crash_of_the_host_tore_is_none(tmp_path, monkeypatch, text):
    def kill(*_):  # session 0 is everybody's: a test must not learn that by trying
        pytest.fail("there is nobody to signal")

    monkeypatch.setattr(proctree, "kill", kill)
    (tmp_path / "engine.json").write_bytes(text)
    assert leftover.end(tmp_path) == 0
    assert not (tmp_path / "engine.json").exists()


def test_what_is_remembered_is_ended(engine, tmp_path):
    process, _ = engine
    leftover.remember(tmp_path, proctree.read(process.pid).key)
    assert [path.name for path in tmp_path.iterdir()] == ["engine.json"]
    assert leftover.end(tmp_path) == 2


def test_nothing_remembered_nothing_done(tmp_path):
    assert leftover.end(tmp_path) == 0
