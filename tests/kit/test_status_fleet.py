"""`kit status` of a cluster whose controller is away: what is known here is told all the same."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from kit.main import main
from records.errors import SchedulerError
from records.seal import SEAL_NAME
from tests.sealed_run import make_run, small_plan

SEALED = "20261130T100000Z-test-plan-0a1b2c"
OPEN = "20261130T110000Z-test-plan-0a1b2c"
WAITING = "20261130T120000Z-test-plan-0a1b2c"
# As Slurm 22.05 says it on a login node whose controller is down; one line each in `asked`.
AWAY = """\
#!{python}
import pathlib, sys
with pathlib.Path({asked!r}).open("a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
print("slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
      file=sys.stderr)
sys.exit(1)
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A login node with a sealed run, one that was under way, and one without a node so far."""
    for name in ("home", "data", "out"):
        monkeypatch.setenv(f"KIT_{name.upper()}", str(tmp_path / name))
    asked = tmp_path / "asked"
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("squeue", "scontrol"):
        (tools / name).write_text(AWAY.format(python=sys.executable, asked=str(asked)))
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    home = tmp_path / "home"
    make_run(home / "runs" / SEALED, small_plan())
    shutil.copytree(home / "runs" / SEALED, home / "runs" / OPEN)
    (home / "runs" / OPEN / SEAL_NAME).unlink()
    (home / "jobs").mkdir()
    for number, name in enumerate((SEALED, OPEN, WAITING), 1):
        (home / "jobs" / f"{name}.json").write_text("{}")
        (home / "jobs" / f"{name}.slurm").write_text(f"kit-0a1b2c3d_{number}\n")
    return asked


def test_what_is_known_here_is_told_and_what_cannot_be_said(
    asked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--fleet", "slurm", "--json"]) == SchedulerError.exit_code
    shown = capsys.readouterr()
    told = {one["run_id"]: one for one in json.loads(shown.out)}
    states = {run_id: one["state"] for run_id, one in told.items()}
    assert states == {SEALED: "sealed", OPEN: "unknown", WAITING: "unknown"}
    assert told[OPEN]["boots"] == told[SEALED]["boots"]
    assert "Unable to contact slurm controller" in shown.err
    assert "2 runs may be under way" in shown.err
    assert "scontrol ping" in shown.err
    assert len(asked.read_text().splitlines()) == 1  # who did not answer is not asked for each run


def test_a_run_that_is_sealed_needs_no_controller(
    asked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", SEALED, "--fleet", "slurm"]) == 0
    assert "sealed" in capsys.readouterr().out
    assert not asked.exists()


def test_the_one_that_is_asked_for_is_told_in_detail(
    asked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", OPEN, "--fleet", "slurm"]) == SchedulerError.exit_code
    shown = capsys.readouterr()
    assert "unknown" in shown.out
    assert "log of the harness" in shown.err
    assert "1 run may be under way" in shown.err
