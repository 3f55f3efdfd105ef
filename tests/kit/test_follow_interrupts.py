"""Ctrl-C while a run is followed: once stops it in order, twice leaves it to stop by itself."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kit.home import Home
from kit.hosts.names import LocalHost
from kit.planning.plan_file import parse_plan
from kit.run.follow import Watch, follow
from kit.run.launch import Started
from records.digest import Digest
from records.errors import InterruptedRunError
from records.job import EngineOnHost, Job

DEMO = (Path(__file__).parents[2] / "kit" / "plans" / "demo.toml").read_text()
RUN = "20261130T100000Z-demo-0a1b2c"


@dataclass
class Pressed:
    """A harness during which Ctrl-C is pressed so many times, then ends with this status."""

    times: int
    status: int
    asked: int = field(default=0, init=False)
    pid: int = 4711

    def exit_status(self) -> int | None:
        if self.times:
            self.times -= 1
            signal.raise_signal(signal.SIGINT)
        return self.status

    def interrupt(self) -> None:
        self.asked += 1


def followed(tmp_path: Path, harness: Pressed) -> InterruptedRunError:
    home = Home(tmp_path, tmp_path, tmp_path / "data", tmp_path / "out")
    engine = EngineOnHost("wheels", ("python",), (), {}, "lock", Digest.of(b""))
    job = Job(RUN, parse_plan(DEMO, "demo.toml"), engine, {}, "r", "s", "salt")
    started = Started(job, harness, 0, f"kit reproduce --run {RUN} --host u@h")
    watch = Watch.begin(home, LocalHost(), RUN)
    with pytest.raises(InterruptedRunError) as caught:
        follow(home, started, watch, lambda _: None)
    return caught.value


def test_once_waits_for_the_harness(tmp_path: Path) -> None:
    harness = Pressed(1, InterruptedRunError.exit_code)
    error = followed(tmp_path, harness)
    assert harness.asked == 1
    assert "was interrupted" in error.message
    assert error.remedy == f"kit reproduce --run {RUN} --host u@h"


def test_twice_says_that_it_goes_on_and_how_to_reach_it(tmp_path: Path) -> None:
    harness = Pressed(2, InterruptedRunError.exit_code)
    error = followed(tmp_path, harness)
    assert harness.asked == 1
    assert "process 4711" in error.message
    assert "goes on until it has marked its boot" in error.message
    assert f"kit reproduce --run {RUN} --host u@h" in error.remedy
    assert f"kit stop {RUN} --host u@h" in error.remedy
