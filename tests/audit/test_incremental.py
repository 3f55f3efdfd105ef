"""An incremental audit asks less and answers the same; so does one that shares its work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from audit import runner
from audit.runner import audit
from kit.audit_cache import NAME, keep_keys, read_keys
from tests.audit.tamper.healthy import OTHER, Repository, build, copy_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A healthy repository, built once."""
    return build(tmp_path_factory.mktemp("incremental"))


@pytest.fixture
def repository(template: Repository, tmp_path: Path) -> Repository:
    """A copy that the test may change."""
    return copy_of(template, tmp_path / "copy")


def clean(repository: Repository) -> frozenset[str]:
    return frozenset(audit(repository.root, repository.data).clean)


def known(repository: Repository, trusted: frozenset[str]) -> tuple[str, ...]:
    return audit(repository.root, repository.data, trusted=trusted).known


def test_a_changed_run_is_looked_at_again_and_the_others_are_not(repository: Repository) -> None:
    trusted = clean(repository)
    repository.log("run-2").write_bytes(b"")
    assert known(repository, trusted) == ("run-1", "run-3")


def test_a_resealed_run_is_another_run(repository: Repository) -> None:
    trusted = clean(repository)
    repository.log("run-2").unlink()
    repository.reseal("run-2")
    assert known(repository, trusted) == ("run-1", "run-3")


def test_the_same_bytes_under_another_name_are_another_run(repository: Repository) -> None:
    trusted = clean(repository)
    repository.run("run-3").rename(repository.run("run-9"))
    assert known(repository, trusted) == ("run-1", "run-2")


def test_a_change_to_a_lock_asks_everything_again(repository: Repository) -> None:
    trusted = clean(repository)
    (repository.root / "images" / "wheels-cpu.lock").write_text("other\n")
    assert known(repository, trusted) == ()


def test_a_commit_to_the_locks_asks_everything_again(repository: Repository) -> None:
    trusted = clean(repository)
    (repository.root / "images" / "note").write_text("a note\n")
    repository.commit("a note")
    (repository.root / "images" / "note").unlink()
    assert known(repository, trusted) == ()


def test_keys_of_nothing_are_nothing(repository: Repository) -> None:
    assert known(repository, frozenset({str(OTHER), ""})) == ()


def test_runs_side_by_side_give_the_same_report(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_WORTH_SHARING_BYTES", 0)
    repository.log("run-2").write_bytes(b"")
    alone = audit(repository.root, repository.data)
    shared = audit(repository.root, repository.data, processes=2)
    assert alone.findings
    assert shared == alone


def test_the_cache_keeps_keys_and_survives_damage(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert read_keys(home) == frozenset()
    keep_keys(home, {"a"}, ["b", "a"])
    assert read_keys(home) == {"a", "b"}
    for damaged in (b"", b"{", b"[]", b'{"format":2,"clean":["a"]}', b'{"format":1,"clean":3}'):
        (home / NAME).write_bytes(damaged)
        assert read_keys(home) == frozenset()


def test_the_command_remembers_the_shipped_records(tmp_path: Path) -> None:
    def run() -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "kit.main", "audit", "--json", "--incremental"],
            env={**os.environ, "KIT_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    first, second = run(), run()
    assert first["known"] == []
    assert second["findings"] == first["findings"]
    # A run that is warned of is looked at anew each time.
    told = {Path(finding["where"]["file"]).parent.name for finding in first["findings"]}
    listed = (ROOT / "records" / "data" / "RUNS").read_text().splitlines()
    if not first["errors"]:
        # Again where somebody edited a source of the auditor between two of them.
        clean = sorted({line.split()[0] for line in listed} - told)
        assert any(sorted(report["known"]) == clean != [] for report in (second, run(), run()))
