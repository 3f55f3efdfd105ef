"""Whose machine it is: Slurm's, SkyPilot's, nobody's; never a name that somebody chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from remote.allocation import observe

MANAGED = "sky-managed-2026-11-30-14-00-00-000000_kit-demo-b1-0a1b2c_7-0"


def test_on_a_machine_of_ones_own(tmp_path: Path) -> None:
    assert observe("start", "salt", tmp_path, {}) is None


@pytest.mark.parametrize(
    ("task", "shown"),
    [(MANAGED, True), ("sky-2026-11-30-14-00-00-000000_sky-0a1b-alice_1", False)],
)
def test_a_machine_of_skypilot(tmp_path: Path, task: str, shown: bool) -> None:
    environ = {"SKYPILOT_TASK_ID": task, "SKYPILOT_NODE_IPS": "10.1.2.3"}
    seen = observe("resume", "salt", tmp_path, environ)
    assert seen is not None
    assert (seen.scheduler, seen.restarts, seen.source) == ("skypilot", -1, "none")
    assert (seen.job == task) == shown
    assert "alice" not in str(seen)
    assert "10.1.2.3" not in str(seen)


def test_slurm_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    environ = {"SKYPILOT_TASK_ID": MANAGED, "SLURM_JOB_ID": "14", "SLURMD_NODENAME": "n1"}
    seen = observe("start", "salt", tmp_path, environ)
    assert seen is not None
    assert (seen.scheduler, seen.job) == ("slurm", "14")
