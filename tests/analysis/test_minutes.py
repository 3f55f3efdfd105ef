"""A run's time: every second in one part, the measured share that of the windows' load."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.minutes import MEASURED, PARTS, minutes
from records import schema
from records.run_directory import RunDirectory, runs_in
from tests.sealed_run import Shape, make_run, small_plan

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("shape", [Shape(), Shape(interrupt_first=True, fail_last=True)])
def test_the_parts_add_up_to_the_whole(tmp_path: Path, shape: Shape) -> None:
    envelopes = list(make_run(tmp_path / "run-1", small_plan(), shape).read())
    found = {part.what: part for part in minutes(envelopes)}
    whole_s = (envelopes[-1].t_ns - envelopes[0].t_ns) / 1e9
    assert sum(part.seconds for part in found.values()) == pytest.approx(whole_s)
    assert sum(part.share for part in found.values()) == pytest.approx(1)
    assert list(found) == [what for what in PARTS if what in found]


def test_measured_is_the_wall_time_of_the_windows_and_a_first_boot_is_one_part(
    tmp_path: Path,
) -> None:
    envelopes = list(make_run(tmp_path / "run-1", small_plan(), Shape()).read())
    found = {part.what: part.seconds for part in minutes(envelopes)}
    walls = [e.event.report.wall_ns for e in envelopes if isinstance(e.event, schema.WindowEnded)]
    assert found[MEASURED] == pytest.approx(sum(walls) / 1e9)
    times = {
        (type(e.event), e.event.boot): e.t_ns
        for e in envelopes
        if isinstance(e.event, schema.BootStarted | schema.BootEnded)
    }
    prime = next(boot for kind, boot in times if boot.startswith("prime-"))
    took_ns = times[schema.BootEnded, prime] - times[schema.BootStarted, prime]
    assert found["first boots"] == pytest.approx(took_ns / 1e9)


def test_no_part_of_a_measured_run_is_negative() -> None:
    for run in runs_in(ROOT / "records" / "data"):
        found = minutes(RunDirectory(run.path).read())
        assert all(part.seconds > 0 for part in found)
        assert {"binding", "start of the engine", MEASURED} <= {part.what for part in found}


def test_nothing_took_no_time() -> None:
    assert minutes([]) == ()
