"""Lines of /proc/<pid>/stat, and which processes belong to a tree."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from records.errors import FormatError
from remote.engine.proctree import Process, belonging, parse_stat, read, snapshot

LINE = "42 (a) b (c) S 1 42 40 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 9876 1 2 18446744073709551615"


def test_a_name_may_hold_blanks_and_parentheses() -> None:
    process = parse_stat(LINE)
    assert process == Process(42, "a) b (c", "S", 1, 42, 40, 9876)
    assert process.alive


@pytest.mark.parametrize("text", ["", "42 python S 1", "42 (python) S 1 2 3"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_stat(text)


def test_this_process_is_seen() -> None:
    me = read(os.getpid())
    assert me is not None
    assert snapshot()[os.getpid()].key == me.key
    assert me.session == os.getsid(0)


def test_no_such_process_is_none() -> None:
    ended = subprocess.Popen((sys.executable, "-c", ""))
    ended.wait()
    assert read(ended.pid) is None


def test_a_zombie_is_not_alive() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    while (process := read(child)) is not None and process.state != "Z":
        pass
    assert process is not None
    assert not process.alive
    os.waitpid(child, 0)


def member(pid: int, parent: int, session: int, start: int = 100) -> Process:
    return Process(pid, "x", "S", parent, session, session, start)


def test_session_descent_and_memory_make_a_tree() -> None:
    processes = {
        p.pid: p
        for p in (
            member(10, 1, 10),
            member(11, 10, 10),
            member(12, 11, 12),  # left the session, parent still in it
            member(13, 1, 10),  # orphan in the session
            member(14, 1, 14),  # orphan outside it, seen before
            member(15, 14, 15),
            member(20, 1, 20),
        )
    }
    found = belonging(processes, (10, 100), {(14, 100)})
    assert {pid for pid, _ in found} == {10, 11, 12, 13, 14, 15}


def test_a_reused_pid_is_somebody_else() -> None:
    processes = {14: member(14, 1, 14, start=500)}
    assert belonging(processes, (10, 100), {(14, 100)}) == set()
