"""What goes to a bucket, when, and what another machine takes over."""

from __future__ import annotations

from pathlib import Path

import pytest
from sshd import wait_for

from remote.bucket import Courier

BOOT = b'{"type":"boot.ended"}\n'
WINDOW = b'{"type":"window.started"}\n'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    directory = tmp_path / "here" / "runs" / "r1"
    (directory / "logs").mkdir(parents=True)
    return directory


def courier_of(run: Path) -> Courier:
    return Courier(run, run.parent.parent / "r1.log", run.parents[2] / "bucket")


def test_whole_lines_go_and_another_machine_takes_them_over(run: Path, tmp_path: Path) -> None:
    (run / "events.jsonl").write_bytes(BOOT + b'{"torn')
    (run / "logs" / "a.gz").write_bytes(b"log")
    (run.parent.parent / "r1.log").write_bytes(b"said\n")
    courier_of(run).bring()
    there = tmp_path / "bucket" / "runs" / "r1"
    assert (there / "events.jsonl").read_bytes() == BOOT
    other = tmp_path / "other" / "runs" / "r1"
    log = tmp_path / "other" / "r1.log"
    log.parent.mkdir()
    second = Courier(other, log, tmp_path / "bucket")
    assert second.restore()
    assert (other / "events.jsonl").read_bytes() == BOOT
    assert (other / "logs" / "a.gz").read_bytes() == b"log"
    assert log.read_bytes() == b"said\n"
    assert not second.restore()  # what is here goes on


def test_nothing_there_is_a_beginning(run: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh" / "runs" / "r1"
    assert not Courier(fresh, tmp_path / "l", tmp_path / "bucket").restore()
    assert not fresh.exists()


def test_it_waits_for_the_end_of_a_boot(run: Path, tmp_path: Path) -> None:
    there = tmp_path / "bucket" / "runs" / "r1" / "events.jsonl"
    journal = run / "events.jsonl"
    journal.write_bytes(WINDOW)
    courier = courier_of(run)
    courier.watch()
    try:
        journal.write_bytes(WINDOW + BOOT)
        wait_for(lambda: there.is_file() and there.read_bytes() == WINDOW + BOOT)
        with journal.open("ab") as file:  # the next boot measures already
            file.write(BOOT + WINDOW)
        assert courier._due() == 0
    finally:
        courier.end()
    assert there.read_bytes() == journal.read_bytes()
