"""What git says of locks, paper and history holds for every run: it is asked once an audit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from audit.runner import audit


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often git was started since the last time."""
    git, log = shutil.which("git"), tmp_path / "asked"
    assert git is not None
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho >> {log}\nexec {git} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")

    def count() -> int:
        times = len(log.read_text())
        log.unlink()
        return times

    return count


def test_more_runs_are_no_more_questions(project, asked):
    for name in ("run-3", "run-4"):
        project.add_run(name)
    project.commit("two more")
    asked()
    some = audit(project.root, project.data)
    for_some = asked()
    for name in ("run-5", "run-6", "run-7", "run-8"):
        project.add_run(name)
    project.git("add", "-A")
    project.git("commit", "-q", "--amend", "-m", "six more")  # as many commits
    asked()
    more = audit(project.root, project.data)
    assert {f.code for f in more.findings} == {f.code for f in some.findings}
    assert for_some == asked() > 0
