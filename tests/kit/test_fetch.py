from __future__ import annotations

import os
import shutil
from pathlib import Path

import closed_run
import pytest
from files_below import files_below

from kit.home import Home
from kit.hosts.names import LocalHost
from kit.run.fetch import Fetched, already_home, carried_data, fetch_run
from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME, Checkpoint, parse_runs, read_runs
from records.errors import (
    ChainError,
    DiskFullError,
    ForeignDirectoryError,
    FormatError,
    NotAPrefixError,
    UnknownRunError,
)
from records.run_directory import RunDirectory
from tests.sealed_run import Shape, make_run, small_plan

RUN = "20261130T100000Z-test-plan-0a1b2c"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return make_run(tmp_path / "host" / RUN, small_plan()).path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "records" / "data"


def test_a_sealed_run_arrives_whole_and_enters_the_checkpoint(remote: Path, data: Path) -> None:
    fetched = fetch_run(LocalHost(), remote, data)
    assert (fetched.sealed, fetched.listed) == (True, True)
    assert files_below(data / RUN) == files_below(remote)
    leaves = parse_runs((data / RUNS_NAME).read_text())
    assert [leaf.run_id for leaf in leaves] == [RUN]
    assert Checkpoint.parse((data / CHECKPOINT_NAME).read_text()) == Checkpoint.of(leaves)
    assert sorted(p.name for p in data.iterdir()) == sorted([RUN, RUNS_NAME, CHECKPOINT_NAME])


def test_fetching_again_changes_nothing(remote: Path, data: Path) -> None:
    fetch_run(LocalHost(), remote, data)
    before = files_below(data)
    again = fetch_run(LocalHost(), remote, data)
    assert (again.new_bytes, again.listed) == (0, False)
    assert files_below(data) == before


def test_a_second_run_disturbs_nothing(remote: Path, data: Path) -> None:
    fetch_run(LocalHost(), remote, data)
    before = files_below(data / RUN)
    other = make_run(remote.parent / f"{RUN[:-1]}d", small_plan()).path
    fetch_run(LocalHost(), other, data)
    assert files_below(data / RUN) == before
    assert len(parse_runs((data / RUNS_NAME).read_text())) == 2


def test_a_growing_run_is_fetched_up_to_its_last_whole_line_and_completed_later(
    remote: Path, data: Path
) -> None:
    whole = (remote / "events.jsonl").read_bytes()
    seal = (remote / "seal.json").read_bytes()
    cut = whole.index(b"\n", len(whole) // 2) + 1
    (remote / "seal.json").unlink()
    (remote / "events.jsonl").write_bytes(whole[: cut + 30])
    first = fetch_run(LocalHost(), remote, data)
    assert not first.sealed
    assert (data / RUN / "events.jsonl").read_bytes() == whole[:cut]
    assert not (data / RUNS_NAME).exists()
    (remote / "events.jsonl").write_bytes(whole)
    (remote / "seal.json").write_bytes(seal)
    second = fetch_run(LocalHost(), remote, data)
    assert (second.sealed, second.new_bytes) == (True, len(whole) - cut)
    assert files_below(data / RUN) == files_below(remote)


@pytest.mark.parametrize("name", ["events.jsonl", "seal.json"])
def test_a_run_edited_where_it_was_made_is_refused(name: str, remote: Path, data: Path) -> None:
    raw = bytearray((remote / name).read_bytes())
    raw[len(raw) // 2] ^= 1
    (remote / name).write_bytes(raw)
    with pytest.raises((ChainError, FormatError)):
        fetch_run(LocalHost(), remote, data)
    assert not (data / RUN).exists()
    assert not (data / RUNS_NAME).exists()


def test_local_records_that_were_edited_stop_the_fetch(remote: Path, data: Path) -> None:
    fetch_run(LocalHost(), remote, data)
    for name in sorted(files_below(remote)):
        path = data / RUN / name
        honest = path.read_bytes()
        path.write_bytes(honest[:-2] + bytes([honest[-2] ^ 1]) + honest[-1:])
        before = files_below(data)
        with pytest.raises(NotAPrefixError) as caught:
            fetch_run(LocalHost(), remote, data)
        assert f"{name} differs from byte {len(honest) - 1}" in caught.value.message
        assert files_below(data) == before
        path.write_bytes(honest)


def test_a_longer_local_journal_is_no_prefix(remote: Path, data: Path) -> None:
    fetch_run(LocalHost(), remote, data)
    with (data / RUN / "events.jsonl").open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(NotAPrefixError, match=r"events\.jsonl differs from byte"):
        fetch_run(LocalHost(), remote, data)


def test_a_file_that_only_stands_here_is_no_prefix(remote: Path, data: Path) -> None:
    fetch_run(LocalHost(), remote, data)
    (data / RUN / "logs" / "more.log").write_bytes(b"x")
    with pytest.raises(NotAPrefixError, match="is here, but not where the run was made"):
        fetch_run(LocalHost(), remote, data)


def test_a_link_on_the_host_is_refused(remote: Path, data: Path) -> None:
    log = next((remote / "logs").iterdir())
    copy = remote.parent / "copy"
    shutil.copy(log, copy)
    log.unlink()
    log.symlink_to(copy)
    with pytest.raises(ChainError):
        fetch_run(LocalHost(), remote, data)


def test_a_run_under_another_name_is_foreign(remote: Path, data: Path) -> None:
    renamed = remote.rename(remote.with_name("another-name"))
    with pytest.raises(ForeignDirectoryError, match="holds run"):
        fetch_run(LocalHost(), renamed, data)


def test_a_directory_without_a_journal_is_no_run(tmp_path: Path, data: Path) -> None:
    empty = tmp_path / "host" / "empty"
    empty.mkdir(parents=True)
    with pytest.raises(UnknownRunError):
        fetch_run(LocalHost(), empty, data)
    assert list(data.iterdir()) == []


def test_an_interrupted_run_verifies_as_it_is(tmp_path: Path, data: Path) -> None:
    path = make_run(tmp_path / "host" / RUN, small_plan(), Shape(seal=False)).path
    assert not fetch_run(LocalHost(), path, data).sealed
    assert RunDirectory(data / RUN).verify_chain().lines > 0


def test_a_link_in_the_place_of_the_run_is_refused(remote: Path, data: Path) -> None:
    elsewhere = shutil.copytree(remote, remote.parent / "elsewhere")
    before = files_below(elsewhere)
    data.mkdir(parents=True)
    (data / RUN).symlink_to(elsewhere)
    with pytest.raises(ForeignDirectoryError, match="is a link to"):
        fetch_run(LocalHost(), remote, data)
    assert files_below(elsewhere) == before
    assert [p.name for p in data.iterdir()] == [RUN]


def test_a_file_in_the_place_of_the_run_is_refused(remote: Path, data: Path) -> None:
    data.mkdir(parents=True)
    (data / RUN).write_text("a note")
    with pytest.raises(ForeignDirectoryError, match="is a file where a run directory belongs"):
        fetch_run(LocalHost(), remote, data)
    assert (data / RUN).read_text() == "a note"


@pytest.mark.parametrize("name", ["events.jsonl", "seal.json", "logs/more"])
def test_a_pipe_in_a_carried_run_is_refused_and_never_waited_for(
    name: str, remote: Path, data: Path, tmp_path: Path
) -> None:
    (remote / name).unlink(missing_ok=True)
    os.mkfifo(remote / name)
    with pytest.raises(ForeignDirectoryError, match="neither a file nor a directory"):
        carried_data(Home(tmp_path, tmp_path, data, tmp_path), remote)
    with pytest.raises(ForeignDirectoryError, match="could not be copied"):
        fetch_run(LocalHost(), remote, data)
    assert list(data.iterdir()) == []


def test_a_directory_without_a_journal_is_no_run_whatever_else_it_holds(
    data: Path, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnknownRunError, match="not a run directory"):
        carried_data(Home(tmp_path, tmp_path, data, tmp_path), tmp_path)


class FullDisk(LocalHost):
    """Says what a directory copy says when the disk is full half-way."""

    def fetch(self, source: Path, target: Path) -> None:
        target.mkdir(parents=True)
        raise shutil.Error([(str(source), str(target), "[Errno 28] No space left on device: 'x'")])


def test_a_disk_that_fills_up_leaves_nothing_behind(remote: Path, data: Path) -> None:
    with pytest.raises(DiskFullError, match="no space left"):
        fetch_run(FullDisk(), remote, data)
    assert list(data.iterdir()) == []


def test_a_run_that_is_home_under_the_seal_of_its_host_is_passed_over(
    remote: Path, data: Path
) -> None:
    def left() -> Fetched | None:
        listed = {leaf.run_id: leaf.seal for leaf in read_runs(data)}
        return already_home(RunDirectory(remote), RunDirectory(data / RUN), listed)

    assert left() is None
    fetch_run(LocalHost(), remote, data)
    found = left()
    assert found is not None
    assert (found.run_id, found.directory, found.sealed, found.new_bytes, found.listed) == (
        RUN, data / RUN, True, 0, False
    )  # fmt: skip
    lost = next((data / RUN / "logs").iterdir())
    lost.unlink()
    assert left() is None
    fetch_run(LocalHost(), remote, data)
    assert left() == found
    runs = (data / RUNS_NAME).read_text()
    (data / RUNS_NAME).write_text("")
    assert left() is None  # a stop before it was listed: the next fetch completes that
    (data / RUNS_NAME).write_text(runs)
    (remote / "seal.json").write_bytes((remote / "seal.json").read_bytes() + b"\n")
    assert left() is None  # the host's is another one by now: fetching it says so
    with pytest.raises(ChainError):
        fetch_run(LocalHost(), remote, data)


def test_a_closed_run_that_was_not_listed_yet_is_listed_by_the_next_fetch(tmp_path: Path) -> None:
    """The kit was stopped after the seal: what was carried here is no more than what is home."""
    data = tmp_path / "project" / "records" / "data"
    run = closed_run.cut_short(data / RUN)
    shutil.copytree(run.path, tmp_path / "carried" / RUN)
    closed_run.closed(run)
    for name in (RUNS_NAME, CHECKPOINT_NAME):
        (data / name).unlink()
    fetched = fetch_run(LocalHost(), tmp_path / "carried" / RUN, data)
    assert (fetched.sealed, fetched.listed) == (True, True)
    assert [leaf.seal for leaf in read_runs(data)] == [run.seal_digest]
