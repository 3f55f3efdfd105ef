"""What kit close refuses, each with its reason and what to type, and what it leaves as it was."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import closed_run
import pytest
import sealed_run
from files_below import files_below

from kit.commands.close import left_to_another
from kit.home import Home
from kit.hosts.names import LocalHost
from kit.main import main
from kit.planning.plan_file import load_plan
from kit.run.close import close_run
from kit.run.fetch import fetch_run
from kit.run.launch import unfinished
from kit.run.state import read_state
from records import canonical, schema
from records.checkpoint import read_runs
from records.decode import to_object
from records.errors import (
    ChainError,
    ClosedRunError,
    ForeignDirectoryError,
    NotAPrefixError,
    RunBusyError,
)
from records.host_lock import holder
from records.job import EngineOnHost, Job
from records.journal import Journal
from records.run_directory import RunDirectory
from remote.host_lock import sole_run

RUN = "20261130T100000Z-test-plan-0a1b2c"
PLAN = sealed_run.small_plan()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return closed_run.home_of_verbs(tmp_path / "project", monkeypatch)


@pytest.fixture
def run(home: Home) -> RunDirectory:
    """What came home: one block, and a boot under way."""
    return closed_run.cut_short(home.data / RUN, plan=PLAN)


def seen_on(home: Home, run: RunDirectory, lines: int | None = None) -> Path:
    """A copy of the journal as this machine followed it on a host, or a part of it."""
    copy = home.path / "hosts" / "gpu-0a1b2c3d" / "runs" / run.path.name
    copy.mkdir(parents=True)
    text = run.events.read_bytes().splitlines(keepends=True)
    (copy / "events.jsonl").write_bytes(b"".join(text[:lines]))
    return copy / "events.jsonl"


def test_it_is_closed_sealed_and_listed(
    home: Home, run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    came_home = run.events.read_bytes()
    lines = len(came_home.splitlines())
    assert main(["close", RUN[:12], "--because", " the lease\n was over ", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["carried_out"], told["missing"], told["listed"]) == ([1], [2], True)
    assert told["event"]["reason"] == "the lease was over"
    assert told["event"]["not_bound_after"] == ["engine", "target", "drafter"]
    assert run.events.read_bytes().startswith(came_home)
    *_, before, last = run.read()
    assert isinstance(last.event, schema.RunClosed)
    assert (last.event.came_home, last.seq) == (lines, lines)
    assert last.t_ns == before.t_ns
    assert run.is_sealed
    assert run.closed == last.event
    assert [leaf.seal for leaf in read_runs(home.data)] == [run.seal_digest]
    state = read_state(run.events)
    assert state.phase == "closed: host gone"
    assert (state.done, list(state.outcomes.values())[-1]) == (2, "interrupted")


def test_for_people_it_says_what_counts_and_what_is_missing(
    home: Home, run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["close", RUN, "--because", "the lease was over"]) == 0
    told = capsys.readouterr().out
    assert f"{RUN}: closed: host gone" in told
    assert "carried out  1 of this run's 2 blocks: 1" in told
    assert "missing      block 2" in told
    assert "kit reproduce --new --plan test-plan --blocks 2" in told
    assert main(["status"]) == 0
    assert "closed: host gone" in capsys.readouterr().out
    assert main(["status", RUN[:12], "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["state"], one["boots"]) == ("closed: host gone", "2/4")


def test_without_a_whole_block_it_may_be_closed_too(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    closed_run.cut_short(home.data / RUN, 1, PLAN)
    assert main(["close", RUN, "--because", "the lease was over"]) == 0
    told = capsys.readouterr().out
    assert "carried out  none of this run's 2 blocks: what it holds are records" in told
    assert "--plan test-plan --blocks 1,2" in told


def test_what_is_left_is_another_runs_of_this_very_plan(tmp_path: Path) -> None:
    """The plan's file may have been changed since, or be somebody's own."""
    shipped = Path(__file__).parents[2] / "kit" / "plans" / "smoke-cpu.toml"
    plan = load_plan(shipped)
    command = "kit reproduce --new --plan smoke-cpu --blocks 1,2"
    (same,) = left_to_another(plan, (1, 2), shipped.parent)
    assert same.endswith(command)
    first, other = left_to_another(replace(plan, seed=1), (1, 2), shipped.parent)
    assert first == same
    assert "another plan smoke-cpu now" in other
    assert str(plan.digest)[:19] in other
    first, none = left_to_another(plan, (1, 2), tmp_path)
    assert (first, "holds no plan smoke-cpu" in none) == (same, True)
    assert left_to_another(plan, (), tmp_path) == []


def test_its_example_names_no_run_of_the_records(capsys: pytest.CaptureFixture[str]) -> None:
    """It would be typed as it stands, and a run is closed for good."""
    assert main(["close", "--help"]) == 0
    (example,) = re.findall(r"kit close (\S+) --because", capsys.readouterr().out)
    data = Path(__file__).parents[2] / "records" / "data"
    assert not [run for run in data.iterdir() if run.name.startswith(example)]


@pytest.mark.parametrize("text", ["", "  ", "x" * 501, "a\x1b[2Jb"])
def test_a_reason_is_words(run: RunDirectory, text: str) -> None:
    assert main(["close", RUN, "--because", text]) == 2
    assert not run.is_sealed


def test_a_sealed_run_never_changes(home: Home, run: RunDirectory) -> None:
    closed_run.closed(run)
    with closed_run.refused(run, ClosedRunError, "was closed before"):
        closed_run.closed(run)
    whole = sealed_run.make_run(home.data / "run-9", PLAN)
    with closed_run.refused(whole, ClosedRunError, "ended itself"):
        closed_run.closed(whole)


def test_a_run_that_ended_without_its_seal_is_brought_whole(home: Home) -> None:
    run = sealed_run.make_run(home.data / RUN, PLAN)
    (run.path / "seal.json").unlink()
    with closed_run.refused(run, ClosedRunError, "has ended"):
        closed_run.closed(run)


def test_a_journal_that_does_not_verify(run: RunDirectory) -> None:
    text = run.events.read_bytes()
    run.events.write_bytes(text.replace(b'"attempt":1', b'"attempt":2', 1))
    with closed_run.refused(run, ChainError, "events.jsonl"):
        closed_run.closed(run)
    run.events.write_bytes(text + b'{"prev":"sha')
    with closed_run.refused(run, ChainError, "middle of a line"):
        closed_run.closed(run)


def test_a_file_that_an_event_names_did_not_come_home(run: RunDirectory) -> None:
    log = min((run.path / "logs").iterdir())
    kept = log.read_bytes()
    log.write_bytes(kept[:-1])
    with closed_run.refused(run, ChainError, log.name):
        closed_run.closed(run)
    log.unlink()
    with closed_run.refused(run, ChainError, log.name, "missing"):
        closed_run.closed(run)


def test_a_run_that_stands_elsewhere_is_taken_in_first(home: Home, tmp_path: Path) -> None:
    run = closed_run.cut_short(tmp_path / "carried" / RUN, plan=PLAN)
    with closed_run.refused(run, ForeignDirectoryError, "not among the records"):
        close_run(home, run, closed_run.REASON)


def test_a_run_that_is_written_on_this_machine(home: Home, run: RunDirectory) -> None:
    """Whatever is said of its host: it is here."""
    here = home.run(RUN)
    here.mkdir(parents=True)
    shutil.copy(run.events, here)
    insists = replace(closed_run.REASON, host_gone=True)
    written = "being written on this machine"
    busy = closed_run.refused(run, RunBusyError, written)
    with Journal.resume(here / "events.jsonl"), busy:
        close_run(home, run, insists)
    lock = Path(os.environ["KIT_HOST_LOCK"])
    with sole_run(RUN, lock):
        assert holder(lock) == f"run {RUN}"
        with closed_run.refused(run, RunBusyError, written):
            close_run(home, run, insists)
    assert holder(lock) == ""
    with sole_run("another", lock):
        close_run(home, run, insists)


def test_a_run_that_may_go_on_where_it_was_begun_unless_that_host_is_gone(
    home: Home, run: RunDirectory
) -> None:
    seen_on(home, run)
    with closed_run.refused(run, ClosedRunError, "begun on host gpu-0a1b2c3d", "can go on there"):
        close_run(home, run, closed_run.REASON)
    close_run(home, run, replace(closed_run.REASON, host_gone=True))
    assert run.is_sealed


def test_a_run_of_this_machine_that_was_stopped_can_go_on(home: Home, run: RunDirectory) -> None:
    here = home.run(RUN)
    here.mkdir(parents=True)
    shutil.copy(run.events, here)
    with closed_run.refused(run, ClosedRunError, "begun on this machine"):
        close_run(home, run, closed_run.REASON)


def test_a_run_whose_seal_was_seen_is_not_closed_whatever_is_said(
    home: Home, run: RunDirectory
) -> None:
    seen = seen_on(home, run)
    (seen.parent / "seal.json").write_bytes(b"{}\n")
    with closed_run.refused(run, ClosedRunError, "its seal was seen"):
        close_run(home, run, replace(closed_run.REASON, host_gone=True))


def test_what_was_seen_of_a_run_cannot_be_left_out_by_closing_it(
    home: Home, run: RunDirectory
) -> None:
    """Two boots came home; three were followed here."""
    longer = closed_run.cut_short(home.root / "aside" / RUN, 3, PLAN)
    seen = seen_on(home, longer)
    lines = len(run.events.read_bytes().splitlines())
    with closed_run.refused(run, ClosedRunError, f"only {lines} came home"):
        close_run(home, run, replace(closed_run.REASON, host_gone=True))
    seen.write_bytes(run.events.read_bytes().replace(b'"attempt":1', b'"attempt":2'))
    with closed_run.refused(run, NotAPrefixError, "differs at line"):
        close_run(home, run, replace(closed_run.REASON, host_gone=True))


def test_the_host_comes_back_with_what_was_home_already(home: Home, run: RunDirectory) -> None:
    there = home.root / "host" / RUN
    shutil.copytree(run.path, there)
    closed_run.closed(run)
    before = files_below(home.data)
    again = fetch_run(LocalHost(), there, home.data)
    assert (again.new_bytes, again.listed) == (0, False)
    copy = home.root / "copy" / RUN
    shutil.copytree(run.path, copy)
    fetch_run(LocalHost(), copy, home.data)
    assert files_below(home.data) == before


@pytest.mark.parametrize("ended", [False, True])
def test_a_host_that_was_not_gone_is_refused_with_what_it_did(home: Home, ended: bool) -> None:
    """Under the same id it holds more than had come home: it went on, or ended the run."""
    there = home.root / "host" / RUN
    if ended:
        shape = sealed_run.Shape(edit=closed_run.gone_host)
        sealed_run.make_run(there, PLAN, shape)
    else:
        closed_run.cut_short(there, 3, PLAN)
    run = closed_run.cut_short(home.data / RUN, 2, PLAN)
    closed_run.closed(run)
    how = "ended it itself" if ended else "went on with it"
    with closed_run.refused(run, ClosedRunError, "was closed here after", how):
        fetch_run(LocalHost(), there, home.data)


def test_a_journal_of_another_run_under_the_same_id(home: Home, run: RunDirectory) -> None:
    there = sealed_run.make_run(home.root / "host" / RUN, PLAN).path
    closed_run.closed(run)
    with closed_run.refused(run, NotAPrefixError, "differs from what had come home"):
        fetch_run(LocalHost(), there, home.data)


def test_a_closed_run_is_not_gone_on_with(home: Home, run: RunDirectory) -> None:
    engine = EngineOnHost("wheels", (), (), {}, "", sealed_run.HARNESS)
    job = Job(RUN, PLAN, engine, {}, str(home.run(RUN)), str(home.scratch(RUN)), "s")
    home.jobs.mkdir(parents=True)
    home.job(RUN).write_bytes(canonical.encode(to_object(job)))
    found = unfinished(home, LocalHost(), PLAN, (), print)
    assert found is not None
    assert found.run_id == RUN
    close_run(home, run, replace(closed_run.REASON, host_gone=True))
    assert unfinished(home, LocalHost(), PLAN, (), print) is None
    assert main(["reproduce", "--run", RUN]) == ClosedRunError.exit_code


def test_a_lock_that_nobody_holds_names_nobody(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert holder(lock) == ""
    lock.write_text("run old\n")
    assert holder(lock) == ""
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert holder(lock) == "run old"
