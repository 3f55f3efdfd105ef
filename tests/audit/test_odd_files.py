"""Links, pipes and directories in place of files are findings: no crash, and nothing waits."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from sealed_run import Shape


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_directory(path: Path) -> None:
    path.mkdir()


def as_loop(path: Path) -> None:
    path.symlink_to(path.name)


def as_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


ODD = (as_pipe, as_directory, as_loop, as_device)


@pytest.mark.parametrize("odd", ODD)
def test_journal(project, codes, odd):
    path = project.run() / "events.jsonl"
    path.unlink()
    odd(path)
    assert codes(project) >= {"SEAL07", "CHAIN02"}


@pytest.mark.parametrize("odd", ODD)
def test_seal(project, codes, odd):
    path = project.run() / "seal.json"
    path.unlink()
    odd(path)
    assert codes(project) >= {"SEAL07", "CKPT03"}


@pytest.mark.parametrize("odd", ODD)
def test_log(project, codes, odd):
    path = next(project.run().glob("logs/*.gz"))
    path.unlink()
    odd(path)
    assert codes(project) >= {"SEAL03", "HIST02"}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["RUNS", "CHECKPOINT"])
def test_lists(project, codes, name, odd):
    path = project.data / name
    path.unlink()
    odd(path)
    found = codes(project)
    assert found & {"HIST01", "HIST02"}
    assert odd is as_directory or "CKPT09" in found


def test_run_that_is_a_link(project, codes):
    elsewhere = project.root.parent / "run-1"
    shutil.move(project.run(), elsewhere)
    project.run().symlink_to(elsewhere)
    assert codes(project) >= {"CKPT09", "CKPT03", "HIST02"}


@pytest.mark.parametrize("odd", [as_pipe, as_loop, as_device])
def test_beside_the_runs(project, codes, odd):
    odd(project.data / "run-9")
    assert codes(project) == {"CKPT09"}


def test_second_name_for_a_run(project, codes):
    (project.data / "run-9").symlink_to("run-1")
    assert codes(project) == {"CKPT09"}


def test_hidden_directory(project, codes):
    shutil.copytree(project.run(), project.data / ".hidden")
    assert codes(project) == {"CKPT09"}


def test_fetch_under_way_is_a_warning(project, codes):
    (project.data / ".incoming" / "run-9").mkdir(parents=True)
    assert codes(project) == {"CKPT10"}


@pytest.mark.parametrize("name", ["notes", ".notes", "logs/more"])
def test_empty_directory_in_a_sealed_run(project, codes, name):
    (project.run() / name).mkdir()
    assert codes(project) == {"SEAL04"}


@pytest.mark.parametrize("odd", [as_pipe, as_loop, as_device])
def test_open_run(project, codes, odd):
    odd(project.add_run("run-3", Shape(seal=False)) / "logs" / "odd")
    assert codes(project) == {"SEAL07", "CKPT08"}


@pytest.mark.parametrize("odd", ODD)
def test_source_of_the_harness(project, codes, odd):
    odd(project.root / "remote" / "odd.py")
    assert "ENGINE03" in codes(project)
