"""Closing a run in which something odd stands: it is named, and not a byte is written."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import closed_run
import pytest

from kit.run.alone import alone_on
from kit.run.close import Closed, close_run
from kit.run.fetch import staging_of
from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME
from records.errors import ForeignDirectoryError
from records.run_directory import RunDirectory
from records.seal import SEAL_NAME

RUN = "20261130T110000Z-test-plan-0a1b2c"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return closed_run.cut_short(tmp_path / "records" / "data" / RUN)


def named(name: bytes) -> Callable[[Path], None]:
    """A file of this name among the logs."""

    def put(run: Path) -> None:
        (run / "logs" / os.fsdecode(name)).touch()

    return put


ODD: dict[str, Callable[[Path], None]] = {
    # Sealed beside it, the run would never have verified again.
    "an empty directory": lambda run: (run / "metrics2").mkdir(),
    "a link": lambda run: (run / "logs" / "x").symlink_to("/etc/hostname"),
    "a pipe": lambda run: os.mkfifo(run / "logs" / "x"),
    "a seal that is a link": lambda run: (run / SEAL_NAME).symlink_to("nowhere"),
    "a seal that is a directory": lambda run: (run / SEAL_NAME / "x").mkdir(parents=True),
    "a directory where it is written": lambda run: (run / ".seal.json.new" / "x").mkdir(
        parents=True
    ),
    "a name that turns text over": named("x\u202e".encode()),
    "a name of two lines": named(b"a\nb"),
    "a name that is no text": named(b"\xff"),
    "a list that is a pipe": lambda run: os.mkfifo(run.parent / RUNS_NAME),
    "a checkpoint that is a directory": lambda run: (run.parent / CHECKPOINT_NAME).mkdir(),
    "a list that is a link": lambda run: (run.parent / RUNS_NAME).symlink_to("../else"),
}


@pytest.mark.parametrize("what", ODD)
def test_what_no_seal_can_name_is_told_before_anything_is_written(
    what: str, run: RunDirectory
) -> None:
    ODD[what](run.path)
    before = run.events.read_bytes()
    with pytest.raises(ForeignDirectoryError) as refusal:
        closed_run.closed(run)
    assert refusal.value.message.isprintable()
    assert run.events.read_bytes() == before
    assert not run.is_sealed


def test_a_run_that_is_just_brought_home_is_closed_after_that(run: RunDirectory) -> None:
    home = closed_run.home_of(run.path.parents[2])
    told = threading.Event()
    found: list[Closed] = []

    def close() -> None:
        found.append(close_run(home, run, closed_run.REASON, lambda _: told.set()))

    closing = threading.Thread(target=close)
    with alone_on(staging_of(run.path), pytest.fail):
        closing.start()
        assert told.wait(30)
        assert not run.is_sealed
    closing.join(30)
    assert found[0].listed
    assert sorted(p.name for p in run.path.parent.iterdir()) == [RUN, CHECKPOINT_NAME, RUNS_NAME]


def test_once_it_is_gone_the_run_closes_and_verifies(run: RunDirectory) -> None:
    (run.path / "empty").mkdir()
    with pytest.raises(ForeignDirectoryError, match="is an empty directory"):
        closed_run.closed(run)
    (run.path / "empty").rmdir()
    assert closed_run.closed(run).listed
    assert list(run.verify_files()) == []
