"""A copy of a run is no second run: it is read under its own name alone, and pooled never."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sealed_run import Shape, make_run, small_plan

from analysis.publish import studies, write_tables
from analysis.reading import read_run
from records.errors import ForeignDirectoryError
from records.run_directory import RunDirectory


@pytest.mark.parametrize("seal", [True, False])
def test_copy_under_another_name_is_refused(tmp_path: Path, seal: bool) -> None:
    run = make_run(tmp_path / "run-1", small_plan(), Shape(seal=seal))
    assert read_run(run).run_id == "run-1"
    shutil.copytree(run.path, tmp_path / "run-2")
    with pytest.raises(ForeignDirectoryError, match=r"run-2.*run-1"):
        read_run(RunDirectory(tmp_path / "run-2"))


def test_tables_are_not_written_over_a_copy(tmp_path: Path) -> None:
    run = make_run(tmp_path / "data" / "run-1", small_plan(), Shape())
    shutil.copytree(run.path, tmp_path / "data" / "run-2")
    with pytest.raises(ForeignDirectoryError):
        write_tables(tmp_path / "data", tmp_path / "tables")
    assert not (tmp_path / "tables").exists()


def test_same_run_from_two_places_is_not_pooled(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run-1", small_plan(), Shape())
    shutil.copytree(run.path, tmp_path / "elsewhere" / "run-1")
    runs = [read_run(run), read_run(RunDirectory(tmp_path / "elsewhere" / "run-1"))]
    with pytest.raises(ForeignDirectoryError, match="run-1"):
        studies(runs)


def test_run_named_twice_is_refused(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "run-1", small_plan(), Shape()))
    with pytest.raises(ForeignDirectoryError, match="run-1"):
        studies([run, run])
