"""The time to the first window, split: the kit's steps by its clock, the host's by the host's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.run.steps import Step, Stopwatch, to_first_window
from records import schema
from tests.sealed_run import make_run, small_plan

RUN = "20261130T100000Z-test-plan-0a1b2c"


def test_the_host_s_steps_end_with_the_first_window_and_add_up(tmp_path: Path) -> None:
    run = make_run(tmp_path / RUN, small_plan())
    read = list(run.read())
    began = read[0].t_ns - 1_000
    steps = list(to_first_window(run.events, began))
    first = next(e for e in read if isinstance(e.event, schema.WindowStarted))
    assert sum(step.took_ns for step in steps) == first.t_ns - began
    assert steps[0] == Step("harness starts", 1_000)
    assert [s.what for s in steps].count("bind engine and models, calibrate the client") == 1
    assert "engine boots" in {step.what for step in steps}


@pytest.mark.parametrize("lines", [0, 1, 4])
def test_a_run_without_a_window_has_no_such_time(tmp_path: Path, lines: int) -> None:
    run = make_run(tmp_path / RUN, small_plan())
    part = run.events.read_bytes().splitlines(keepends=True)[:lines]
    run.events.write_bytes(b"".join(part))
    assert list(to_first_window(run.events, 0)) == []


def test_laps_follow_each_other() -> None:
    watch = Stopwatch()
    for what in ("a", "b"):
        watch.lap(what)
    assert [step.what for step in watch.steps] == ["a", "b"]
    assert all(step.took_ns >= 0 for step in watch.steps)
