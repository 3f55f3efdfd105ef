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


def test_nothing_remembered_nothing_done(tmp_path):
    assert leftover.end(tmp_path) == 0
