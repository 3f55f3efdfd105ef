from __future__ import annotations

import threading

from kit.engine.wheels import without_packages
from kit.heartbeat import heartbeat


def test_a_long_block_is_told_until_it_ends() -> None:
    said: list[str] = []
    twice = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 2:
            twice.set()

    with heartbeat(say, "reading", first_s=0.01, every_s=0.01):
        assert twice.wait(30)
    count = len(said)
    assert said[0] == "reading …"
    assert said[1].startswith("reading: still at it")
    assert len(said) == count


def test_a_short_block_is_not_told() -> None:
    said: list[str] = []
    with heartbeat(said.append, "reading", first_s=3600):
        pass
    assert said == []


def test_the_list_of_what_was_installed_is_left_out() -> None:
    said: list[str] = []
    show = without_packages(said.append)
    for line in ("Installed 2 packages in 3 s", "+ numpy==2.3.1", "- six==1.0"):
        show(f"uv pip sync: {line}")
    assert said == ["uv pip sync: Installed 2 packages in 3 s"]
