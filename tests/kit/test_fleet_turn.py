"""Kits on several machines take turns to submit a plan: one at a time, and no ghost holds one."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pytest
from sshd import ROOT, wait_for

from kit.fleet.turn import Holder, turn
from kit.hosts.host import Done
from kit.hosts.local import LocalHost
from records.errors import RunBusyError, SchedulerError

ELSEWHERE = Holder(
    "process 7 on other", "2026-11-30T20:00:00Z", "ab" * 8, "other-boot pid:[1] 7 99"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "jobs dir" / "plan.turn"


def held(place: Path, holder: Holder = ELSEWHERE, text: str = "") -> None:
    """As a kit leaves it that was killed."""
    place.mkdir(parents=True)
    (place / holder.token).write_text(text or json.dumps(asdict(holder)))


def test_a_turn_leaves_nothing_behind(place: Path) -> None:
    for _ in range(2):
        with turn(LocalHost(), place, pytest.fail):
            (token,) = place.iterdir()
            assert json.loads(token.read_text())["who"].startswith("process ")
        assert list(place.parent.iterdir()) == []


def test_who_waits_is_told_for_whom_and_what_takes_a_forgotten_turn_away(place: Path) -> None:
    held(place)
    said: list[str] = []

    def wait() -> None:
        with turn(LocalHost(), place, said.append, period_s=0.01):
            said.append("mine")

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_for(lambda: len(said) == 1, "nothing was said")
    command = f"rm -r '{place}'"
    assert said[0].startswith("process 7 on other submits this plan just now, since 2026-11-30T20")
    assert said[0].endswith(f"if it has ended, on local: {command}")
    subprocess.run(["sh", "-c", command], check=True)
    waiting.join(timeout=10)
    assert said[1:] == ["mine"]
    assert list(place.parent.iterdir()) == []


def test_patience_ends_in_the_same_words(place: Path) -> None:
    held(place)
    with (
        pytest.raises(RunBusyError, match="process 7 on other") as refusal,
        turn(LocalHost(), place, pytest.fail, patience_s=0),
    ):
        pytest.fail("it was held")
    assert "rm -r" in refusal.value.remedy
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_a_process_of_this_machine_that_ended_holds_up_nobody(place: Path) -> None:
    program = (
        "import os,sys,pathlib\n"
        "from kit.fleet.turn import turn\n"
        "from kit.hosts.local import LocalHost\n"
        "with turn(LocalHost(), pathlib.Path(sys.argv[1]), print): os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(place)], cwd=ROOT, check=False)
    assert len(list(place.iterdir())) == 1
    said: list[str] = []
    with turn(LocalHost(), place, said.append):
        assert "and has ended: going on" in said[0]
    assert list(place.parent.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "\xff", json.dumps(asdict(replace(ELSEWHERE, who="\x1b[2J"))), '{"who": 1}'],
)
def test_a_holder_that_cannot_be_read_is_waited_for(place: Path, text: str) -> None:
    held(place)
    (place / ELSEWHERE.token).write_text(text, encoding="latin-1")
    with (
        pytest.raises(RunBusyError, match="another kit"),
        turn(LocalHost(), place, pytest.fail, patience_s=0),
    ):
        pytest.fail("it was held")


@pytest.mark.parametrize("process", ["", "x", "a b c d", "a b -1 4"])
def test_only_what_is_surely_gone_is_gone(process: str) -> None:
    own = Holder.own()
    assert not own.is_gone
    assert not replace(own, process=process).is_gone
    boot, space, pid, start = own.process.split()
    assert replace(own, process=f"{boot} {space} {pid} {int(start) + 1}").is_gone
    assert not replace(own, process=f"other {space} {pid} {int(start) + 1}").is_gone
    assert not replace(own, process=f"{boot} pid:[0] {pid} {int(start) + 1}").is_gone


@dataclass
class Twice(LocalHost):
    """A line that drops with every answer: each command runs twice; `between`: what comes then."""

    between: Callable[[], None] = lambda: None
    asked: list[Sequence[str]] = field(default_factory=list)

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: int = 60) -> Done:
        self.asked.append(argv)
        super().run(argv, stdin=stdin, timeout_s=timeout_s)
        self.between()
        return super().run(argv, stdin=stdin, timeout_s=timeout_s)


def test_a_line_that_drops_neither_loses_a_turn_nor_takes_that_of_another(place: Path) -> None:
    host = Twice()
    with turn(host, place, pytest.fail):
        assert place.is_dir()

        def taken() -> None:
            if not place.exists():
                held(place)

        host.between = taken
    assert [path.name for path in place.iterdir()] == [ELSEWHERE.token]


def test_a_place_where_nothing_can_be_put_is_told(place: Path) -> None:
    place.parent.mkdir()
    place.write_text("a file")
    with (
        pytest.raises(SchedulerError, match="nobody can take turns"),
        turn(LocalHost(), place, pytest.fail),
    ):
        pytest.fail("it cannot be")
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_many_at_once_are_one_after_the_other(place: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def take(number: int) -> None:
        with turn(LocalHost(), place, lambda _: None, period_s=0.01):
            inside.append(number)
            most.append(len(inside))
            inside.remove(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert most == [1] * 6
