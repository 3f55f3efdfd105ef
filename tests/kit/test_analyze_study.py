"""`kit analyze` over several runs: one study beside the pools; of a single run nothing changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.main import main
from tests.comparable_runs import Made, l4_plan, made_run

PLAN = l4_plan(2, ("draft-bf16-graph", "none-bf16-graph"))


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where tables go; the records hold shares of two hosts and a third on another driver."""
    for name, made in (
        ("run-1", Made(host="h-1", blocks=(1,))),
        ("run-2", Made(host="h-2", blocks=(2,))),
        ("run-3", Made(host="h-3", driver="570.9")),
    ):
        made_run(tmp_path / "data" / name, PLAN, made)
    monkeypatch.setenv("KIT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("KIT_OUT", str(tmp_path / "out"))
    return tmp_path / "out" / "tables"


def test_several_runs_are_one_study(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "--json"]) == 0
    told = {s["name"]: s for s in json.loads(capsys.readouterr().out)["studies"]}
    assert set(told) == {"run-1", "run-2", "run-3", "study-l4-confounds"}
    tables = {t["name"]: t["rows"] for t in told["study-l4-confounds"]["tables"]}
    assert set(tables) == {"boots-by-host", "study", "re-runs", "hosts", "host-effects"}
    found = {(row["stratum"], row["boot"]): row["outcome"] for row in tables["study"]}
    assert len(found) == 2 * 4
    assert set(found.values()) == {"completed"}
    names = sorted(path.name for path in (out / "study-l4-confounds").iterdir())
    assert names == sorted(f"{t}.{s}" for t in tables for s in ("csv", "md", "tex"))


def test_it_is_printed_in_full_and_as_a_summary(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["analyze"]) == 0
    told = capsys.readouterr().out
    assert "What was carried out of the plan, by block and arm" in told
    assert "; 1 host; of 4 planned boots" in told
    assert "; 2 hosts; of 4 planned boots" in told
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["analyze"]) == 0
    shown = capsys.readouterr().out
    assert "Stratum A: NVIDIA L4, driver 570.9" in shown
    assert f"{out / 'study-l4-confounds'}/*.md" in shown


def test_one_run_alone_is_no_study(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "run-1", "--json"]) == 0
    (study,) = json.loads(capsys.readouterr().out)["studies"]
    assert study["name"] == "run-1"
    assert [path.name for path in out.iterdir()] == ["run-1"]
