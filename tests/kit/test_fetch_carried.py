"""What came home in one directory: every run in it is taken in, and what is no run is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.main import main
from records.checkpoint import read_runs
from records.errors import UnknownRunError
from records.run_directory import RunDirectory
from tests.sealed_run import Shape, make_run, small_plan

SEALED = ("20261130T100000Z-test-plan-0a1b2c", "20261130T110000Z-other-plan-0a1b2d")
OPEN = "20261130T120000Z-other-plan-0a1b2e"


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    """Two sealed runs and one that is not, beside a file and a directory that are none."""
    for name in SEALED:
        make_run(tmp_path / "carried" / name, small_plan())
    make_run(tmp_path / "carried" / OPEN, small_plan(), Shape(seal=False))
    (tmp_path / "carried" / "harness.log").write_text("no run\n")
    (tmp_path / "carried" / "empty").mkdir()
    return tmp_path / "carried"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KIT_HOME", str(tmp_path / "kit"))
    monkeypatch.setenv("KIT_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def taken(carried: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, int]:
    assert main(["fetch-records", "--from", str(carried), "--json", *options]) == 0
    return {one["run_id"]: one["new_bytes"] for one in json.loads(capsys.readouterr().out)}


def test_every_sealed_run_is_taken_in_once(
    carried: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = taken(carried, capsys)
    assert tuple(first) == SEALED
    assert all(first.values())
    assert tuple(leaf.run_id for leaf in read_runs(data)) == SEALED
    assert not (data / OPEN).exists()
    assert set(taken(carried, capsys).values()) == {0}


def test_one_that_is_not_sealed_is_named_or_asked_for(
    carried: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fetch-records", "--from", str(carried)]) == 0
    assert f"{OPEN}: not sealed yet" in capsys.readouterr().err
    assert tuple(taken(carried, capsys, "--unfinished")) == (*SEALED, OPEN)
    assert not RunDirectory(data / OPEN).is_sealed


def test_a_directory_without_runs_is_refused(
    carried: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fetch-records", "--from", str(carried / "empty")]) == UnknownRunError.exit_code
    assert "empty is not a run directory" in capsys.readouterr().err
    assert not data.exists()
