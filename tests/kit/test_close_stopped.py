"""A closing that a full disk, a stop or another closing meets: done whole, again, or not at all."""

from __future__ import annotations

import resource
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import closed_run
import pytest
from files_below import files_below

from kit.home import Home
from kit.run.close import close_run
from records.errors import (
    ChainError,
    ClosedRunError,
    DiskFullError,
)
from records.run_directory import RunDirectory

RUN = "20261130T100000Z-test-plan-0a1b2c"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return closed_run.home_of_verbs(tmp_path / "project", monkeypatch)


@pytest.fixture
def run(home: Home) -> RunDirectory:
    """What came home: one block, and a boot under way."""
    return closed_run.cut_short(home.data / RUN)


@pytest.mark.parametrize("room_bytes", [0, 1, 60, 200])
def test_a_full_disk_leaves_the_run_as_it_came_home(
    home: Home, run: RunDirectory, room_bytes: int
) -> None:
    before = files_below(home.data)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    room_bytes += len(before[f"{RUN}/events.jsonl"])
    resource.setrlimit(resource.RLIMIT_FSIZE, (room_bytes, most[1]))
    try:
        with pytest.raises(DiskFullError):
            closed_run.closed(run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert files_below(home.data) == before
    assert closed_run.closed(run).listed


def test_a_closing_that_a_stop_cut_short_is_done_again(
    home: Home, run: RunDirectory, tmp_path: Path
) -> None:
    """The line of run.closed is on disk in part: nothing else of the run is lost."""
    before = run.events.read_bytes()
    whole = tmp_path / "whole" / "records" / "data" / RUN
    shutil.copytree(run.path, whole)
    closed_run.closed(RunDirectory(whole))
    line = (whole / "events.jsonl").read_bytes().removeprefix(before)
    for kept in (line.index(b'"value":') + 8, 200, len(line) - 1):
        run.events.write_bytes(before + line[:kept])
        close_run(home, run, replace(closed_run.REASON, because="another reason"))
        *_, last = run.read()
        assert last.event.reason == "another reason"
        assert run.events.read_bytes().startswith(before)
        for path in (run.path / "seal.json", home.data / "RUNS", home.data / "CHECKPOINT"):
            path.unlink()


@pytest.mark.parametrize("lost", [("RUNS", "CHECKPOINT"), ("CHECKPOINT",)])
def test_a_stop_between_seal_and_lists_is_made_up_for_by_the_same_command(
    home: Home, run: RunDirectory, lost: tuple[str, ...]
) -> None:
    closed_run.closed(run)
    before = files_below(home.data)
    for name in lost:
        (home.data / name).unlink()
    again = closed_run.closed(run)
    assert (again.event, again.missing) == (run.closed, (2,))
    assert files_below(home.data) == before


def test_a_stop_in_the_middle_of_the_list_is_made_up_for(home: Home, run: RunDirectory) -> None:
    closed_run.closed(run)
    before = files_below(home.data)
    (home.data / "RUNS").write_bytes(before["RUNS"][:40])
    (home.data / "CHECKPOINT").unlink()
    assert closed_run.closed(run).listed
    assert files_below(home.data) == before


def test_what_was_sealed_by_closing_and_changed_then_is_not_listed(
    home: Home, run: RunDirectory
) -> None:
    closed_run.closed(run)
    for name in ("RUNS", "CHECKPOINT"):
        (home.data / name).unlink()
    min((run.path / "logs").iterdir()).write_bytes(b"")
    with closed_run.refused(run, ChainError, "logs/"):
        closed_run.closed(run)


def test_a_clock_by_which_the_run_is_yet_to_begin_closes_nothing(
    home: Home, run: RunDirectory
) -> None:
    """The audit would never take what was sealed then: one of the two clocks is wrong."""
    early = replace(closed_run.REASON, realtime_ns=1)
    with closed_run.refused(run, ClosedRunError, "began at", "by its host's clock"):
        close_run(home, run, early)


def test_another_torn_line_than_that_of_a_closing_is_refused(run: RunDirectory) -> None:
    """It was cut off from an event that the host wrote, which may be had from there."""
    text = run.events.read_bytes()
    *_, last = text.splitlines(keepends=True)
    run.events.write_bytes(text.removesuffix(last) + last[:-9])
    with closed_run.refused(run, ChainError, "middle of a line"):
        closed_run.closed(run)


class Meanwhile(Home):
    """A home in which another kit begins to close the run when anybody asks where it was."""

    others: ClassVar[list[threading.Thread]] = []
    refusals: ClassVar[list[ClosedRunError]] = []

    def run(self, run_id: str) -> Path:
        """As in Home."""
        if not self.others:
            waits = threading.Event()
            self.others.append(threading.Thread(target=self._close, args=(run_id, waits)))
            self.others[0].start()
            assert waits.wait(30)
        return super().run(run_id)

    def _close(self, run_id: str, waits: threading.Event) -> None:
        here = closed_run.home_of(self.root)
        run = RunDirectory(here.data / run_id)
        try:
            close_run(here, run, closed_run.REASON, lambda _: waits.set())
        except ClosedRunError as error:
            self.refusals.append(error)


def test_two_closings_at_once_close_it_once(home: Home, run: RunDirectory) -> None:
    """The other one waits, and then finds it closed."""
    meanwhile = Meanwhile(home.root, home.path, home.data, home.out)
    close_run(meanwhile, run, replace(closed_run.REASON, because="another reason"))
    (other,) = meanwhile.others
    other.join(30)
    assert [error.message for error in meanwhile.refusals] == [
        f"run {run.path.name} is sealed: it was closed before, and never changes"
    ]
    *_, last = run.read()
    assert last.event.reason == "another reason"
    assert not list(run.verify_files())
