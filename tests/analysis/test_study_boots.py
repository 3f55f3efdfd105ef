"""The boots of each arm on each host: all attempts, void windows too, and their sum."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.claiming.reading import StudyRun, read_study_run
from analysis.study_boots import boots_by_host
from records.run_directory import RunDirectory

DATA = Path(__file__).parents[2] / "records" / "data"


def counted(*runs: StudyRun) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(row[0], row[1]): row[2:] for row in boots_by_host(runs).rows}


@pytest.fixture(scope="module")
def first() -> StudyRun:
    return read_study_run(RunDirectory(DATA / "20261130T170838Z-sm90-confounds-70604b"))


@pytest.fixture(scope="module")
def second() -> StudyRun:
    return read_study_run(RunDirectory(DATA / "20261130T172404Z-sm90-confounds-aee89a"))


def test_an_attempt_that_a_lost_host_cut_off_is_counted_as_what_it_was(first, second):
    seen = counted(second, first)
    # completed, failed, interrupted, open, windows, void
    assert seen["draft-eager", first.host_id] == ("1", "0", "1", "0", "3", "0")
    assert seen["draft-eager", second.host_id] == ("1", "0", "0", "0", "3", "0")
    assert seen["draft-eager", "all 2"] == ("2", "0", "1", "0", "6", "0")
    assert ("ngram", "all 1") not in seen


def test_arms_stand_in_the_plans_order_and_hosts_in_that_of_their_runs(first, second):
    keys = list(counted(second, first))
    assert [arm for arm, host in keys if host == first.host_id] == [
        "draft",
        "draft-eager",
        "ngram",
        "none",
    ]
    assert [host for arm, host in keys if arm == "draft"] == [
        first.host_id,
        second.host_id,
        "all 2",
    ]


def test_void_windows_are_counted_beside_all():
    seen = counted(read_study_run(RunDirectory(DATA / "20261130T235815Z-sm90-shape8b-193a1c")))
    assert set(seen.values()) == {("1", "0", "0", "0", "2", "1")}
