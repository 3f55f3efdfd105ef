"""A healthy project with two sealed runs, committed to git, for audits to be let loose on."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sealed_run

from analysis.publish import write_run_tables
from analysis.reading import read_run
from audit.harness_archive import digest_of, sources_in
from audit.runner import audit
from records.run_directory import RunDirectory
from tests.audit.claimed_paper import Paper

ROOT = Path(__file__).parents[2]
GIT = (
    "git",
    "-c",
    "user.name=test",
    "-c",
    "user.email=test@example.org",
    "-c",
    "commit.gpgsign=false",
    "-c",
    "init.defaultBranch=main",
)


class Project:
    """A project under a temporary directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "records" / "data"

    def run(self, name: str = "run-1") -> Path:
        """A run's directory."""
        return self.data / name

    def commit(self, message: str = "a change") -> None:
        """Commit everything."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def commit_empty(self) -> None:
        """A commit that changes nothing, so that a shallow clone lacks one."""
        self.git("commit", "-q", "--allow-empty", "-m", "nothing")

    def git(self, *arguments: str) -> None:
        """Run git here."""
        subprocess.run([*GIT, *arguments], cwd=self.root, check=True, capture_output=True)

    def add_run(self, name: str, shape: Any = None, plan: Any = None, listed: bool = True) -> Path:
        """Make one more run, sealed and listed unless told otherwise."""
        shape = replace(shape or sealed_run.Shape(), harness=digest_of(sources_in(self.root)))
        run = sealed_run.make_run(self.data / name, plan or sealed_run.small_plan(), shape)
        if listed and shape.seal:
            sealed_run.list_run(self.data, run)
        return run.path


def build_project(root: Path) -> Project:
    """Two runs (one that was interrupted and had a failure and a void window), locks, tables."""
    project = Project(root)
    project.data.mkdir(parents=True)
    images = root / "images"
    images.mkdir()
    (images / "wheels-cpu.lock").write_bytes(sealed_run.LOCK_TEXT)
    files = {n: {"digest": str(d), "size_bytes": 1} for n, d in sealed_run.MODEL_FILES.items()}
    lock = {"format": 1, "models": {m: {"files": files} for m in ("target", "drafter")}}
    (images / "models.lock.json").write_text(json.dumps(lock, indent=1))
    (root / "remote").mkdir()
    (root / "remote" / "main.py").write_text("import json\n\nprint(json.dumps({}))\n")
    for licence in ("LICENSE", "LICENSE-DATA"):
        shutil.copy(ROOT / licence, root)
    project.add_run("run-1")
    project.add_run(
        "run-2",
        sealed_run.Shape(interrupt_first=True, fail_last=True, void_first_window=True),
    )
    write_run_tables(read_run(RunDirectory(project.run())), root / "paper" / "tables")
    project.git("init", "-q")
    project.commit("records")
    return project


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy project, built once."""
    return build_project(tmp_path_factory.mktemp("template") / "project").root


@pytest.fixture
def project(template: Path, tmp_path: Path) -> Project:
    """A copy of it that the test may spoil."""
    root = tmp_path / "project"
    shutil.copytree(template, root, symlinks=True)
    return Project(root)


@pytest.fixture
def codes() -> Callable[[Project], set[str]]:
    """The codes that an audit of a project gives."""
    return lambda project: {f.code for f in audit(project.root, project.data).findings}


@pytest.fixture
def paper(project: Project) -> Paper:
    """A sound paper over a healthy project."""
    return Paper(project)
