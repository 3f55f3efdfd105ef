"""`kit figures`: files in every form, each with its data, for a run made on the spot."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sealed_run import Shape, make_run, small_plan

import kit.commands.figures
from analysis.figures.pooled import pooled_runs
from analysis.reading import read_run
from kit.main import main
from records import schema
from records.run_directory import RunDirectory

NAMES = {
    "decisions",
    "boots",
    "variance",
    "steps",
    "step-gaps",
    "goodput",
    "calibration",
    "timeline",
}


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
    assert told["study"] == run.path.name
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


def test_runs_of_one_plan_are_drawn_together_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kit.commands.figures, "write_figures", lambda *_: [])
    runs = [
        make_run(tmp_path / f"20261130T00000{i}Z-test-plan-{i * 111111}", small_plan(2))
        for i in (1, 2)
    ]
    assert main(["figures", *[str(run.path) for run in runs], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["study"] for one in told] == [*[r.path.name for r in runs], "study-test-plan"]


def test_boots_of_a_block_that_two_runs_carried_out_count_once(tmp_path: Path) -> None:
    def share(name: str, blocks: tuple[int, ...]) -> RunDirectory:
        def edit(event: Any) -> Any:
            if isinstance(event, schema.RunStarted):
                return replace(event, blocks=blocks)
            boot = getattr(event, "boot", "b")
            inside = boot.startswith("prime") or any(boot.startswith(f"b0{b}") for b in blocks)
            return event if boot == "b" or inside else None

        return make_run(tmp_path / name, small_plan(3), Shape(edit=edit))

    first = share("20261130T000001Z-test-plan-aaaaaa", (1, 2))
    again = share("20261130T000002Z-test-plan-bbbbbb", (2, 3))
    ((name, runs),) = pooled_runs([(read_run(one), one) for one in (first, again)])
    assert name == "study-test-plan"
    blocks = [b.planned.block for run in runs for b in run.boots if b.planned]
    assert sorted(blocks) == [1, 1, 2, 2, 3, 3]


def test_no_run_is_an_error_with_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KIT_DATA", str(tmp_path))
    assert main(["figures"]) == 13
    assert "kit reproduce" in capsys.readouterr().err
