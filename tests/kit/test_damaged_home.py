"""Damage below KIT_HOME: each verb names it, and goes on with what is whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kit.home import Home
from kit.hosts.names import LocalHost
from kit.main import main
from kit.run.launch import jobs, require_intact
from kit.run.state import read_state
from records.errors import ChainError, FormatError, UnknownRunError
from tests.sealed_run import Shape, make_run, small_plan

RUN = "20261130T100000Z-test-plan-0a1b2c"
BAD = "20261130T090000Z-test-plan-0a1b2c"
GARBAGE = (b"\x00\xff\x00 garbage\n", b"{}\n", b"[1,2]\n", b"[" * 100_000 + b"\n")


def bad_journal(home: Path, data: bytes) -> Path:
    events = home / "runs" / BAD / "events.jsonl"
    events.parent.mkdir(parents=True)
    events.write_bytes(data)
    return events


@pytest.mark.parametrize("data", GARBAGE)
def test_status_names_a_damaged_journal_and_tells_the_others(
    data: bytes, kit_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad_journal(kit_home, data)
    make_run(kit_home / "runs" / RUN, small_plan())
    assert main(["status", "--json"]) == 0
    shown = capsys.readouterr()
    assert [t["state"] for t in json.loads(shown.out)] == ["damaged", "sealed"]
    assert f"{BAD}/events.jsonl:1" in shown.err


def test_a_pipe_in_the_place_of_a_note_or_a_log_is_not_waited_for(
    kit_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(kit_home / "runs" / RUN, small_plan(), Shape(seal=False))
    for folder, name in (("jobs", f"{RUN}.pid"), ("logs", f"{RUN}.log")):
        (kit_home / folder).mkdir()
        os.mkfifo(kit_home / folder / name)
    assert main(["status", "--json"]) == 0
    assert [t["state"] for t in json.loads(capsys.readouterr().out)] == ["interrupted"]
    assert main(["logs", RUN]) == UnknownRunError.exit_code
    assert main(["stop"]) == UnknownRunError.exit_code


@pytest.mark.parametrize("data", GARBAGE)
def test_stop_and_a_new_start_pass_a_damaged_journal(
    data: bytes, kit_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = bad_journal(kit_home, data)
    assert main(["stop"]) == UnknownRunError.exit_code
    assert main(["stop", BAD]) == UnknownRunError.exit_code
    with pytest.raises(ChainError):
        require_intact(events)


def test_a_line_beyond_what_one_may_hold_is_refused_torn_or_whole(tmp_path: Path) -> None:
    whole = make_run(tmp_path / RUN, small_plan()).events.read_bytes()
    events = tmp_path / "events.jsonl"
    number = whole.count(b"\n") + 1
    for end in (b"", b"\n"):
        events.write_bytes(whole + b"x" * (9 << 20) + end)
        with pytest.raises(ChainError, match=f"line {number}: too long"):
            require_intact(events)


def test_a_journal_that_is_no_file_is_told_and_never_waited_for(tmp_path: Path) -> None:
    for make in (Path.mkdir, os.mkfifo):
        events = tmp_path / "events.jsonl"
        make(events)
        with pytest.raises(FormatError, match="is not a file"):
            read_state(events)
        with pytest.raises(ChainError, match="is not a file"):
            require_intact(events)
        events.rmdir() if events.is_dir() else events.unlink()


def test_a_job_that_is_a_directory_is_named_and_passed_over(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path, tmp_path / "data", tmp_path / "out")
    (home.jobs / "dir.json").mkdir(parents=True)
    (home.jobs / "text.json").write_bytes(b"\xff")
    said: list[str] = []
    assert list(jobs(home, said.append)) == []
    assert [line.split(":")[0] for line in said] == [
        f"passing over {home.jobs / name}" for name in ("dir.json", "text.json")
    ]


@pytest.mark.parametrize("text", ["abc", "", "-", "1\n2"])
def test_a_note_that_names_no_process_is_none(text: str, tmp_path: Path) -> None:
    note = tmp_path / "x.pid"
    note.write_text(text)
    assert LocalHost().attach(note, "x.json") is None
