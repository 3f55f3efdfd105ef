"""A sealed run: whatever is done to any file of it is found, with the file, the line, the want."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records import canonical, schema
from records.digest import Digest
from records.errors import ChainError, FormatError, UnknownRunError
from records.journal import Journal
from records.run_directory import RunDirectory, RunFileError, runs_in

MakeRun = Callable[[Path], RunDirectory]
FILES = ("events.jsonl", "logs/engine.log.gz", "metrics/after.prom.gz", "seal.json")


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory, make_run: MakeRun) -> dict[str, bytes]:
    """The files of a sealed run, by name."""
    run = make_run(tmp_path_factory.mktemp("data"))
    return {name: (run.path / name).read_bytes() for name in FILES}


class Copy:
    """A copy of the sealed run to tamper with, and all that verification says of it."""

    def __init__(self, path: Path, files: dict[str, bytes]) -> None:
        self.run = RunDirectory(path)
        self.sealed_as = Digest.of(files["seal.json"])
        for name, data in files.items():
            (path / name).parent.mkdir(exist_ok=True)
            (path / name).write_bytes(data)

    def faults(self) -> Iterator[RunFileError]:
        """The seal against the digest in the checkpoint, then the journal, then all files."""
        path = self.run.path / "seal.json"
        if not path.exists():
            yield RunFileError(path, 0, f"missing; want {self.sealed_as} (from the checkpoint)")
            return
        if self.run.seal_digest != self.sealed_as:
            got = self.run.seal_digest
            yield RunFileError(path, 1, f"got {got}, want {self.sealed_as} (from the checkpoint)")
            return
        try:
            self.run.verify_chain()
        except RunFileError as error:
            yield error
        yield from self.run.verify_files()

    def only_fault(self, name: str, line: int) -> RunFileError:
        """The one fault there is, at this place; its message says got and want."""
        (fault,) = self.faults()
        assert fault.file == self.run.path / name
        assert fault.line == line
        assert str(fault.file) in fault.message
        assert "want" in fault.message
        return fault


@pytest.fixture
def copy(tmp_path: Path, sealed: dict[str, bytes]) -> Copy:
    """One copy."""
    return Copy(tmp_path, sealed)


def test_an_untouched_run_has_no_fault(copy: Copy, events: list[Any]) -> None:
    assert list(copy.faults()) == []
    assert [e.event for e in copy.run.read()] == events


@settings(max_examples=300)
@given(st.sampled_from(FILES), st.data())
def test_any_changed_byte_of_any_file(
    sealed: dict[str, bytes], name: str, data: st.DataObject
) -> None:
    with TemporaryDirectory() as directory:
        copy = Copy(Path(directory), sealed)
        whole = bytearray(sealed[name])
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] ^= data.draw(st.integers(1, 255))
        (copy.run.path / name).write_bytes(whole)
        if name == "events.jsonl":
            copy.only_fault(name, 1 + sealed[name].count(b"\n", 0, at))
            with pytest.raises(ChainError):
                next(copy.run.read())
        elif name == "seal.json":
            assert str(copy.sealed_as) in copy.only_fault(name, 1).message
        else:
            want = Digest.of(sealed[name])
            assert f"of {want}" in copy.only_fault(name, 0).message


@settings(max_examples=60)
@given(st.data())
def test_lines_dropped_swapped_repeated(sealed: dict[str, bytes], data: st.DataObject) -> None:
    with TemporaryDirectory() as directory:
        copy = Copy(Path(directory), sealed)
        lines = sealed["events.jsonl"].splitlines(keepends=True)
        i = data.draw(st.integers(0, len(lines) - 2))
        j = data.draw(st.integers(i + 1, len(lines) - 1))
        edit = data.draw(st.sampled_from(["drop", "swap", "repeat", "cut"]))
        if edit == "drop":
            del lines[i]
        elif edit == "swap":
            lines[i], lines[j] = lines[j], lines[i]
        elif edit == "repeat":
            lines.insert(i, lines[i])
        else:
            del lines[i:]
        copy.run.events.write_bytes(b"".join(lines))
        copy.only_fault("events.jsonl", i + 2 if edit == "repeat" else i + 1)


def test_the_last_line_dropped(copy: Copy, events: list[Any]) -> None:
    lines = copy.run.events.read_bytes().splitlines(keepends=True)
    copy.run.events.write_bytes(b"".join(lines[:-1]))
    fault = copy.only_fault("events.jsonl", len(events))
    assert f"got {len(events) - 1} lines, want {len(events)} lines (from the seal)" in fault.message


@pytest.mark.parametrize("tail", [b"\n", b"x", b"{}\n"])
def test_a_line_appended(copy: Copy, events: list[Any], tail: bytes) -> None:
    with copy.run.events.open("ab") as file:
        file.write(tail)
    copy.only_fault("events.jsonl", len(events) + 1)


def test_a_line_appended_by_the_journal_itself(copy: Copy, events: list[Any]) -> None:
    from records.journal import Journal

    with Journal.resume(copy.run.events) as journal:
        journal.append(events[-1])
    fault = copy.only_fault("events.jsonl", len(events) + 1)
    assert f"want {len(events)} lines (from the seal)" in fault.message


@pytest.mark.parametrize("name", FILES)
def test_a_file_deleted(copy: Copy, name: str) -> None:
    (copy.run.path / name).unlink()
    assert "missing" in copy.only_fault(name, 0).problem


@pytest.mark.parametrize("name", ["notes.txt", "logs/more.gz", "new/deep/file", ".hidden"])
def test_a_file_added(copy: Copy, name: str) -> None:
    path = copy.run.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    copy.only_fault(name, 0)


def test_files_exchanged(copy: Copy) -> None:
    log, page = copy.run.path / FILES[1], copy.run.path / FILES[2]
    data = log.read_bytes(), page.read_bytes()
    log.write_bytes(data[1])
    page.write_bytes(data[0])
    assert [fault.file for fault in copy.faults()] == [log, page]


def test_a_file_replaced_by_a_link_to_the_same_bytes(copy: Copy, tmp_path_factory: Any) -> None:
    log = copy.run.path / FILES[1]
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "log"
    log.rename(elsewhere)
    log.symlink_to(elsewhere)
    copy.only_fault(FILES[1], 0)


def test_an_odd_thing_added(copy: Copy) -> None:
    os.mkfifo(copy.run.path / "pipe")
    copy.only_fault("pipe", 0)


def test_a_seal_that_misstates_the_journal_is_found_without_a_checkpoint(copy: Copy) -> None:
    path = copy.run.path / "seal.json"
    seal = canonical.decode(path.read_bytes()[:-1])
    for key in ("lines", "bytes"):
        for step in (-1, 1):
            events = seal["events"] | {key: seal["events"][key] + step}
            path.write_bytes(canonical.encode(seal | {"events": events}) + b"\n")
            with pytest.raises(RunFileError, match="want"):
                copy.run.verify_chain()


def test_a_malformed_seal_is_named_with_its_path(copy: Copy) -> None:
    path = copy.run.path / "seal.json"
    path.write_bytes(b"{}\n")
    with pytest.raises(RunFileError, match=f"{path}:1: .*missing key"):
        copy.run.verify_chain()


def test_a_run_that_is_not_sealed_has_no_seal(copy: Copy, events: list[Any]) -> None:
    (copy.run.path / "seal.json").unlink()
    assert not copy.run.is_sealed
    assert copy.run.verify_chain().lines == len(events)
    with pytest.raises(UnknownRunError, match="not a sealed run"):
        copy.run.seal()


def test_a_line_that_chains_but_is_not_in_the_schema_is_named(tmp_path: Path) -> None:
    from records import chain

    line = chain.make_line(chain.EMPTY, 1, "run.begun", {})
    (tmp_path / "events.jsonl").write_bytes(line)
    with pytest.raises(FormatError, match=r"events\.jsonl:1: unknown event type 'run\.begun'"):
        list(RunDirectory(tmp_path).read())


def test_runs_are_listed_in_order_and_nothing_else(tmp_path: Path) -> None:
    for name in ("b", "a", ".scratch"):
        (tmp_path / name).mkdir()
    (tmp_path / "RUNS").write_bytes(b"")
    assert [run.path.name for run in runs_in(tmp_path)] == ["a", "b"]
    assert runs_in(tmp_path / "nowhere") == ()


def test_an_empty_directory_added(copy: Copy) -> None:
    (copy.run.path / "best").mkdir()
    copy.only_fault("best", 0)


def test_a_pipe_is_no_journal_and_nothing_waits_for_it(copy: Copy) -> None:
    copy.run.events.unlink()
    os.mkfifo(copy.run.events)
    with pytest.raises(RunFileError, match="no regular file"):
        copy.run.verify_chain()


def test_a_link_to_a_run_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-2").symlink_to("run-1")
    assert [run.path.name for run in runs_in(tmp_path)] == ["run-1"]


def test_how_a_run_was_closed_is_read_off_its_last_line_alone(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert run.closed is None
    event = schema.RunClosed("the lease was over", "0.1", 2, 0, "", ("engine",))
    with Journal.create(run.events) as journal:
        journal.append(event)
        assert run.closed == event
        journal.append(schema.BootHealthy("b01-1-none", 1))
    assert run.closed is None
    run.events.unlink()
    os.mkfifo(run.events)  # whoever opens it waits for ever
    assert run.closed is None
