"""`kit calibrate`: the plan's concurrencies and bound, a table, JSON, exit 53."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.main import main
from records.errors import CalibrationError

DEMO = (Path(__file__).parents[2] / "kit" / "plans" / "demo.toml").read_text()


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KIT_HOME", str(tmp_path / "home"))
    file = tmp_path / "tiny.toml"
    short = DEMO.replace("output_tokens = 50", "output_tokens = 10")
    file.write_text(short.replace("step_gap_ms = 10", "step_gap_ms = 5"))
    return file


def bound(plan: Path, bound_ns: int) -> str:
    old = "calibrated_p99_ns = 2_000_000"
    assert old in plan.read_text()
    plan.write_text(plan.read_text().replace(old, f"calibrated_p99_ns = {bound_ns}"))
    return str(plan)


def test_the_plans_concurrencies_for_machines(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("calibrate", "--plan", bound(plan, 10**9), "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["plan"], told["bound_ns"]) == ("demo", 10**9)
    assert [c["concurrency"] for c in told["calibrated"]] == [1, 8]
    for one in told["calibrated"]:
        assert one["within"]
        assert one["error_ns"] == one["error_p99_ns"]


def test_a_table_and_exit_53_beyond_the_bound(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("calibrate", "--plan", bound(plan, 1), "--concurrency", "2", "--user-stamps")
    assert main(argv) == CalibrationError.exit_code
    shown = capsys.readouterr()
    assert "beyond" in shown.out
    assert "user" in shown.out
    assert "no kernel stamps here: the largest error counts" in shown.out
    assert "plan demo allows 0.000 ms" in shown.err


def test_a_processor_that_is_not_there_is_named(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("calibrate", "--plan", str(plan), "--client-cpus", "4095", "--concurrency", "1")
    assert main(argv) == CalibrationError.exit_code
    assert "processor 4095" in capsys.readouterr().err
