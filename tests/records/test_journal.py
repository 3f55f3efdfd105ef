"""The journal: an event is on disk when append returns, whatever happens to the writer then."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records import canonical, chain, schema
from records.digest import Digest
from records.errors import (
    ChainError,
    DiskFullError,
    ForeignDirectoryError,
    FormatError,
    RunBusyError,
    UnknownRunError,
)
from records.journal import Journal, drop_begun, is_busy
from records.run_directory import RunDirectory

ROOT = Path(__file__).parents[2]
WRITER = """
import sys
from pathlib import Path
from records.journal import Journal
from records.schema import BootHealthy
journal = Journal.create(Path(sys.argv[1]))
for i in range(int(sys.argv[2])):
    journal.append(BootHealthy("boot", i))
    print(i, flush=True)
sys.stdin.read()
"""


def _beats(count: int) -> list[schema.BootHealthy]:
    return [schema.BootHealthy(f"boot-{i}", i) for i in range(count)]


def _write(path: Path, count: int) -> bytes:
    with Journal.create(path) as journal:
        for event in _beats(count):
            journal.append(event, t_ns=event.after_ns)
    return path.read_bytes()


def _read(path: Path) -> list[Any]:
    return [e.event for e in RunDirectory(path.parent).read()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a journal may be made."""
    return tmp_path / "events.jsonl"


def test_what_is_appended_is_read_back(path: Path, events: list[Any]) -> None:
    before = time.monotonic_ns()
    with Journal.create(path) as journal:
        for event in events:
            journal.append(event)
            assert path.stat().st_size == journal.state.bytes
    after = time.monotonic_ns()
    envelopes = list(RunDirectory(path.parent).read())
    assert [e.event for e in envelopes] == events
    assert [e.seq for e in envelopes] == list(range(len(events)))
    stamps = [e.t_ns for e in envelopes]
    assert [before, *stamps, after] == sorted([before, *stamps, after])


def test_create_refuses_what_exists(path: Path) -> None:
    whole = _write(path, 2)
    with pytest.raises(ForeignDirectoryError, match="never overwritten"):
        Journal.create(path)
    assert path.read_bytes() == whole


def test_resume_refuses_what_does_not_exist(path: Path) -> None:
    with pytest.raises(UnknownRunError, match=r"events\.jsonl"):
        Journal.resume(path)


def test_resume_goes_on_where_it_stopped(path: Path) -> None:
    whole = _write(path, 3)
    with Journal.resume(path) as journal:
        assert journal.state.lines == 3
        journal.append(_beats(4)[3])
    assert path.read_bytes().startswith(whole)
    assert _read(path) == _beats(4)


def test_an_event_outside_the_schema_leaves_no_trace(path: Path) -> None:
    with Journal.create(path) as journal:
        with pytest.raises(FormatError):
            journal.append(schema.HostObserved("start", "x", {"load": 0.5}))
        journal.append(_beats(1)[0])
    assert _read(path) == _beats(1)


@pytest.mark.parametrize("complete", [0, 1, 3])
def test_a_tail_torn_anywhere_is_cut_and_said_so(path: Path, complete: int) -> None:
    whole = _write(path, complete + 1)
    last = whole.splitlines(keepends=True)[-1]
    for kept in range(len(last)):
        path.write_bytes(whole[: len(whole) - len(last) + kept])
        with Journal.resume(path) as journal:
            journal.append(schema.BootHealthy("after", 1))
        torn = [schema.JournalRepaired(kept, Digest.of(last[:kept]))] if kept else []
        assert _read(path) == [*_beats(complete), *torn, schema.BootHealthy("after", 1)]


def test_a_torn_tail_longer_than_a_block_is_cut(path: Path) -> None:
    whole = _write(path, 2)
    torn = b'{"prev":"' + b"x" * 200_000
    path.write_bytes(whole + torn)
    Journal.resume(path).close()
    assert _read(path) == [*_beats(2), schema.JournalRepaired(len(torn), Digest.of(torn))]


@settings(max_examples=60)
@given(st.data())
def test_resume_refuses_a_changed_line_and_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("run") / "events.jsonl"
    whole = bytearray(_write(path, 4))
    end = whole.rfind(b"\n", 0, -1)  # nothing vouches for the body of the last line yet
    whole[data.draw(st.integers(0, end))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    with pytest.raises(ChainError, match=rf"{path}: line [1-4]:"):
        Journal.resume(path)
    assert path.read_bytes() == bytes(whole)
    assert not is_busy(path)


@pytest.fixture
def writer(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A real process that writes events and says after each that it is on disk."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), "1000000"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("count", [1, 7, 60])
def test_what_was_acknowledged_survives_kill_9(
    path: Path, writer: subprocess.Popen[str], count: int
) -> None:
    assert writer.stdout is not None
    for _ in range(count):
        writer.stdout.readline()
    writer.kill()
    said = count + len(writer.stdout.read().split())
    assert writer.wait() == -9
    with Journal.resume(path) as journal:
        journal.append(schema.BootHealthy("after", 0))
    *written, after = _read(path)
    if written and isinstance(written[-1], schema.JournalRepaired):
        written.pop()
    assert after == schema.BootHealthy("after", 0)
    assert written == [schema.BootHealthy("boot", i) for i in range(len(written))]
    assert len(written) in (said, said + 1)  # on disk, but stopped before it could say so


def test_a_second_writer_is_refused_until_the_first_is_gone(
    path: Path, writer: subprocess.Popen[str]
) -> None:
    assert writer.stdout is not None
    writer.stdout.readline()
    assert is_busy(path)
    with pytest.raises(RunBusyError, match="another process is writing"):
        Journal.resume(path)
    assert is_busy(path)
    writer.kill()
    writer.wait()
    assert not is_busy(path)
    Journal.resume(path).close()


def test_a_second_writer_in_one_process_is_refused_too(path: Path) -> None:
    with Journal.create(path), pytest.raises(RunBusyError):
        Journal.resume(path)
    Journal.resume(path).close()


FULL = """
import resource, sys
from pathlib import Path
from records.errors import DiskFullError
from records.journal import Journal
from records.schema import BootHealthy
journal = Journal.create(Path(sys.argv[1]))
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), hard))
written = 0
try:
    while True:
        journal.append(BootHealthy("boot", written), t_ns=0)
        written += 1
except DiskFullError as error:
    print(written, error.message, error.remedy, sep="|")
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
for _ in range(2):
    try:
        journal.append(BootHealthy("boot", written), t_ns=0)
    except DiskFullError as error:
        print(error.exit_code)
"""


@pytest.mark.parametrize("limit_bytes", [1, 500, 1000, 1001, 1002])
def test_a_full_disk_tears_at_most_the_line_it_refuses(path: Path, limit_bytes: int) -> None:
    """RLIMIT_FSIZE makes the kernel cut a write short and refuse the rest, for any user.

    The writer lifts the limit before it tries again: what the failed write left on disk is not
    known to it, so it must not go on even where there is room.
    """
    ended = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(limit_bytes)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    first, *again = ended.stdout.splitlines()
    written, message, remedy = first.split("|")
    assert "no space left to record boot.healthy in" in message
    assert str(path) in message
    assert "resumes" in remedy
    assert again == [str(DiskFullError.exit_code)] * 2
    whole = path.read_bytes()
    assert len(whole) == limit_bytes
    torn = whole[whole.rfind(b"\n") + 1 :]
    Journal.resume(path).close()
    assert path.read_bytes().startswith(whole[: len(whole) - len(torn)])
    want: list[Any] = [schema.BootHealthy("boot", i) for i in range(int(written))]
    assert _read(path) == want + (
        [schema.JournalRepaired(len(torn), Digest.of(torn))] if torn else []
    )


def test_no_space_left_on_the_device_is_a_full_disk(path: Path) -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    with Journal(Path("/dev/full"), fd, chain.EMPTY) as journal:
        with pytest.raises(DiskFullError) as caught:
            journal.append(_beats(1)[0])
        assert isinstance(caught.value.__cause__, OSError)
        assert caught.value.__cause__.errno == errno.ENOSPC
        assert journal.state == chain.EMPTY


def test_other_failures_of_the_system_are_not_called_a_full_disk(path: Path) -> None:
    _write(path, 1)
    fd = os.open(path, os.O_RDONLY)
    with Journal(path, fd, chain.EMPTY) as journal, pytest.raises(OSError, match="Bad file"):
        journal.append(_beats(1)[0])


def _lengthened(path: Path, length: int) -> None:
    """A last line of so many bytes without an end; on disk it takes no room."""
    with path.open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) + length)


def test_a_torn_tail_as_long_as_a_line_may_be_is_cut(path: Path) -> None:
    _write(path, 2)
    _lengthened(path, chain.MAX_LINE_BYTES)
    Journal.resume(path).close()
    dropped = schema.JournalRepaired(chain.MAX_LINE_BYTES, Digest.of(b"\0" * chain.MAX_LINE_BYTES))
    assert _read(path) == [*_beats(2), dropped]


@pytest.mark.parametrize("more", [1, 1 << 40])
@pytest.mark.parametrize("lines", [0, 2])
def test_a_tail_that_no_writer_left_is_named_and_not_read(
    path: Path, lines: int, more: int
) -> None:
    """A terabyte: who read it to its end would not come back."""
    before = _write(path, lines)
    _lengthened(path, chain.MAX_LINE_BYTES + more)
    size = path.stat().st_size
    for read in (lambda: Journal.resume(path), lambda: drop_begun(path, "run.closed")):
        with pytest.raises(ChainError) as caught:
            read()
        told = f"{path}: line {lines + 1}: too long: got more than {chain.MAX_LINE_BYTES} bytes"
        assert caught.value.message.startswith(told)
        assert caught.value.remedy == "kit audit"
        assert not is_busy(path)
    assert path.stat().st_size == size
    with path.open("rb") as file:
        assert file.read(len(before)) == before


def test_a_whole_line_that_is_too_long_is_named(path: Path) -> None:
    first, second = _write(path, 2).splitlines(keepends=True)
    path.write_bytes(first + b" " * chain.MAX_LINE_BYTES + b"\n" + second)
    with pytest.raises(ChainError, match=r"events.jsonl: line 2: too long"):
        Journal.resume(path)
    with pytest.raises(ChainError, match=r"events.jsonl:2: line 2: too long"):
        _read(path)


def test_lines_are_canonical_json(path: Path, events: list[Any]) -> None:
    with Journal.create(path) as journal:
        for event in events:
            journal.append(event)
    for line in path.read_bytes().splitlines():
        assert canonical.encode(canonical.decode(line)) == line
