"""The tables after a run: its own stand whatever became of its neighbours."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.commands.reproduce import _show
from kit.run.fetch import Fetched
from kit.run.follow import Ending
from kit.run.reproduce import Reproduced
from records import schema
from tests.sealed_run import Shape, make_run, small_plan

RUN = "20261130T100000Z-test-plan-0a1b2c"
OLD = "20261130T090000Z-test-plan-0a1b2c"


BUSY = "6 of 8 windows used; 2 void (client-lag): the machine was busy; --new measures again"


def _lagging(event: Any) -> Any:
    """What is void is so because the client came late."""
    if isinstance(event, schema.WindowEnded) and event.void:
        return replace(event, void=("client-lag: p99 9000000 ns, bound 5000000",))
    return event


@pytest.fixture
def done(tmp_path: Path) -> Reproduced:
    run = make_run(tmp_path / "data" / RUN, small_plan()).path
    return Reproduced(Ending(RUN, 4, 0), Fetched(RUN, run, True, 1, True), tmp_path / "tables")


def test_a_whole_neighbour_is_pooled_without_a_warning(
    done: Reproduced, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(done.fetched.directory.parent / OLD, small_plan())
    (told,) = _show([done], as_json=True)
    assert {RUN, OLD} < {Path(path).parent.name for path in told["tables"]}
    assert "warning" not in capsys.readouterr().err


def test_the_next_thing_to_look_at_is_named(
    done: Reproduced, capsys: pytest.CaptureFixture[str]
) -> None:
    _show([done], as_json=False)
    assert f"kit report {RUN}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (Shape(), "8 of 8 windows used"),
        (
            Shape(void_first_window=True),
            "6 of 8 windows used; 2 void (jit); --new measures again",
        ),
        (Shape(void_first_window=True, edit=_lagging), BUSY),
        (Shape(fail_last=True), "6 of 6 windows used"),
    ],
)
def test_the_last_line_says_how_many_windows_are_used(
    shape: Shape, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "data" / RUN, small_plan(), shape).path
    done = Reproduced(Ending(RUN, 4, 0), Fetched(RUN, run, True, 1, True), tmp_path / "tables")
    _show([done], as_json=False)
    assert capsys.readouterr().out.splitlines()[-1] == said


def test_windows_of_other_clients_are_counted_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan of two windows, one of them a plain client's: else half of them were lost."""
    plan = small_plan()
    own, other = plan.windows
    plan = replace(plan, windows=(own, replace(other, client="asyncio")))
    assert plan.windows[1].by_peer
    run = make_run(tmp_path / "data" / RUN, plan).path
    done = Reproduced(Ending(RUN, 4, 0), Fetched(RUN, run, True, 1, True), tmp_path / "tables")
    _show([done], as_json=False)
    said = "4 of 4 windows used; of other clients 4 of 4"
    assert capsys.readouterr().out.splitlines()[-1] == said


@pytest.mark.parametrize("damage", ["edited", "no journal", "copy", "garbage seal"])
def test_a_damaged_neighbour_costs_a_warning_and_no_table(
    damage: str, done: Reproduced, capsys: pytest.CaptureFixture[str]
) -> None:
    old = make_run(done.fetched.directory.parent / OLD, small_plan()).path
    events = old / "events.jsonl"
    if damage == "edited":
        events.write_bytes(events.read_bytes().replace(b'"port":', b'"pOrt":', 1))
    elif damage == "no journal":
        events.unlink()
    elif damage == "copy":
        shutil.rmtree(old)
        shutil.copytree(done.fetched.directory, old)
    else:
        (old / "seal.json").write_bytes(b"\xff")
    before = events.read_bytes() if events.exists() else b""
    (told,) = _show([done], as_json=True)
    assert {Path(path).parent.name for path in told["tables"]} == {RUN}
    assert all(Path(path).is_file() for path in told["tables"])
    shown = capsys.readouterr().err
    assert f"warning: {OLD} is left out of the tables" in shown
    assert "try: kit audit" in shown
    assert (events.read_bytes() if events.exists() else b"") == before


def test_runs_of_other_hosts_are_not_read_and_each_names_its_own_tables(
    done: Reproduced, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a thousand hosts the last one does not read what the others brought home."""
    data = done.fetched.directory.parent
    other = make_run(data / OLD, small_plan(), Shape(host="host-2")).path
    with (other / "events.jsonl").open("ab") as file:
        file.write(b"damage that only a reader finds\n")
    third = "20261130T110000Z-test-plan-0a1b2c"
    path = make_run(data / third, small_plan(), Shape(host="host-3")).path
    second = Reproduced(Ending(third, 4, 0), Fetched(third, path, True, 1, True), done.tables)
    told = _show([done, second], as_json=True)
    named = [{Path(path).parent.name for path in one["tables"]} for one in told]
    assert named == [{RUN}, {third}]
    assert "warning" not in capsys.readouterr().err
