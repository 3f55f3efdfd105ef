"""`kit figures`: files in every form, each with its data, for a run made on the spot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sealed_run import Shape, make_run, small_plan

from kit.main import main

NAMES = {"decisions", "boots", "variance", "step-gaps", "goodput", "calibration", "timeline"}


def test_every_figure_in_every_form_with_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(
        tmp_path / "20261130T000000Z-test-plan-aaaaaa", small_plan(1), Shape(synthetic=True)
    )
    monkeypatch.setenv("KIT_OUT", str(tmp_path / "out"))
    monkeypatch.setenv("KIT_HOME", str(tmp_path / "home"))
    assert main(["figures", str(run.path), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["run"] == run.path.name
    assert {figure["name"] for figure in told["figures"]} == NAMES
    # A synthetic run's figures stand where its tables do.
    directory = tmp_path / "out" / "demo" / "figures" / run.path.name
    wanted = {f"{name}.{end}" for name in NAMES for end in ("pdf", "svg", "png", "csv")}
    assert {path.name for path in directory.iterdir()} == wanted
    for figure in told["figures"]:
        assert {Path(file).suffix for file in figure["files"]} == {".pdf", ".svg", ".png", ".csv"}
    for path in directory.glob("*.csv"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) > 1


def test_no_run_is_an_error_with_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    assert main(["figures"]) == 13
    assert "kit reproduce" in capsys.readouterr().err
