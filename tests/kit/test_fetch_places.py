"""Fetching where something odd stands, or somebody else fetches: nothing unverified comes in."""

from __future__ import annotations

import os
import resource
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.hosts.local import LocalHost
from kit.run.fetch import fetch_run
from records.errors import ForeignDirectoryError
from records.journal import EVENTS_NAME
from records.run_directory import RunDirectory
from records.seal import SEAL_NAME
from tests.sealed_run import make_run, small_plan

RUN = "20261130T100000Z-test-plan-0a1b2c"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return make_run(tmp_path / "host" / RUN, small_plan()).path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "records" / "data"


def seal_as_link(remote: Path) -> None:
    (remote / SEAL_NAME).rename(remote / "s")
    (remote / SEAL_NAME).symlink_to("s")


def seal_as_directory(remote: Path) -> None:
    (remote / SEAL_NAME).unlink()
    (remote / SEAL_NAME).mkdir()


def link_in_an_open_run(remote: Path) -> None:
    (remote / SEAL_NAME).unlink()
    (remote / "logs" / "more").symlink_to("/etc/hostname")


@pytest.mark.parametrize("spoil", [seal_as_link, seal_as_directory, link_in_an_open_run])
def test_what_is_neither_sealed_nor_open_stays_outside(
    spoil: Callable[[Path], None], remote: Path, data: Path
) -> None:
    spoil(remote)
    with pytest.raises(ForeignDirectoryError):
        fetch_run(LocalHost(), remote, data)
    assert list(data.iterdir()) == []


def staged_as_pipe(staging: Path) -> None:
    staging.parent.mkdir(parents=True)
    os.mkfifo(staging)


def staged_as_link(staging: Path) -> None:
    staging.parent.mkdir(parents=True)
    (staging.parents[2] / "mine").mkdir()
    staging.symlink_to(staging.parents[2] / "mine")


def incoming_as_link(staging: Path) -> None:
    staging.parents[1].mkdir(parents=True)
    (staging.parents[2] / "mine").mkdir()
    staging.parent.symlink_to(staging.parents[2] / "mine")


@pytest.mark.parametrize("put", [staged_as_pipe, staged_as_link, incoming_as_link])
def test_what_stands_where_records_are_staged_is_named_and_left_alone(
    put: Callable[[Path], None], remote: Path, data: Path
) -> None:
    put(data / ".incoming" / RUN)
    with pytest.raises(ForeignDirectoryError, match=r"\.incoming"):
        fetch_run(LocalHost(), remote, data)
    assert not (data / RUN).exists()


@pytest.mark.parametrize("name", [EVENTS_NAME, "logs"])
def test_records_here_that_are_links_are_not_written_through(
    name: str, remote: Path, data: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (data / RUN).mkdir(parents=True)
    if name == EVENTS_NAME:
        whole = (remote / name).read_bytes()
        outside.write_bytes(whole[: whole.index(b"\n") + 1])
    else:
        outside.mkdir()
    (data / RUN / name).symlink_to(outside)
    before = outside.read_bytes() if outside.is_file() else list(outside.iterdir())
    with pytest.raises(ForeignDirectoryError, match="is a link to"):
        fetch_run(LocalHost(), remote, data)
    assert before == (outside.read_bytes() if outside.is_file() else list(outside.iterdir()))
    assert not (data / "RUNS").exists()


def test_of_two_fetches_at_once_the_second_waits_and_finds_the_run(
    remote: Path, data: Path
) -> None:
    staged, go_on = threading.Event(), threading.Event()

    class Slow(LocalHost):
        def fetch(self, source: Path, target: Path) -> None:
            super().fetch(source, target)
            staged.set()
            assert go_on.wait(30)

    class Torn(LocalHost):
        """Its line is slow: of a second fetch that does not wait, only the seal has arrived."""

        def fetch(self, source: Path, target: Path) -> None:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            shutil.copyfile(source / SEAL_NAME, target / SEAL_NAME)
            go_on.set()
            first.join(30)
            super().fetch(source, target)

    found = {}
    said: list[str] = []

    def bring() -> None:
        found["first"] = fetch_run(Slow(), remote, data)

    def bring_too() -> None:
        found["second"] = fetch_run(Torn(), remote, data, say=_tell)

    def _tell(line: str) -> None:
        said.append(line)
        go_on.set()

    first, second = threading.Thread(target=bring), threading.Thread(target=bring_too)
    first.start()
    assert staged.wait(30)
    second.start()
    first.join(30)
    second.join(30)
    assert said == [f"another process brings {RUN} home just now: waiting"]
    assert (found["first"].listed, found["second"].listed) == (True, False)
    assert list(RunDirectory(data / RUN).verify_files()) == []
    assert not (data / ".incoming").exists()


@pytest.mark.parametrize("tail", [b"", b"x", b"x" * (1 << 20), b"\0" * ((1 << 21) + 3)])
def test_a_torn_tail_of_any_length_is_cut(tail: bytes, remote: Path, data: Path) -> None:
    (remote / SEAL_NAME).unlink()
    whole = (remote / EVENTS_NAME).read_bytes()
    (remote / EVENTS_NAME).write_bytes(whole + tail)
    fetch_run(LocalHost(), remote, data)
    assert (data / RUN / EVENTS_NAME).read_bytes() == whole


def test_a_disk_that_is_full_in_the_middle_of_a_line_leaves_the_journal_as_it_was(
    remote: Path, data: Path
) -> None:
    whole = (remote / EVENTS_NAME).read_bytes()
    half = whole.index(b"\n", len(whole) // 2) + 1
    fetch_run(LocalHost(), remote, data)
    here = data / RUN
    (here / SEAL_NAME).unlink()
    (here / EVENTS_NAME).write_bytes(whole[:half])
    for lists in ("RUNS", "CHECKPOINT"):
        (data / lists).unlink()

    class Full(LocalHost):
        """Once the run is staged, no file here may grow by more than a few bytes."""

        def fetch(self, source: Path, target: Path) -> None:
            super().fetch(source, target)
            resource.setrlimit(resource.RLIMIT_FSIZE, (half + 100, before[1]))

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(OSError, match="File too large"):
            fetch_run(Full(), remote, data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (here / EVENTS_NAME).read_bytes() == whole[:half]
    assert fetch_run(LocalHost(), remote, data).sealed
    assert (here / EVENTS_NAME).read_bytes() == whole
