"""Tables of many runs one after the other are those of all runs at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.claiming.reading import read_study_run
from analysis.claiming.sharing import Sharing
from analysis.publish import studies
from analysis.reading import read_run
from analysis.spool import spool
from records.errors import ChainError, ForeignDirectoryError
from records.run_directory import RunDirectory
from tests.sealed_run import Shape, make_run, small_plan


@pytest.fixture
def runs(tmp_path: Path) -> list[RunDirectory]:
    """Two of one host that are pooled, one of another host, a synthetic one."""
    shapes = {
        "run-1": Shape(blocks=(1, 2)),
        "run-2": Shape(blocks=(2,), scale_ppm=900_000),
        "run-3": Shape(blocks=(3,)),
        "run-4": Shape(host="host-2", interrupt_first=True),
        "demo": Shape(synthetic=True),
    }
    return [
        make_run(tmp_path / "data" / name, small_plan(3), shape) for name, shape in shapes.items()
    ]


def test_the_same_tables(runs: list[RunDirectory], tmp_path: Path) -> None:
    real = [run for run in map(read_run, runs) if not run.started.synthetic]
    with spool(runs, tmp_path / "cache", lambda run: not run.started.synthetic) as read:
        assert [run.run_id for run in read.runs] == [run.run_id for run in real]
        assert [*read.alone(), *read.pooled()] == studies(real)
        assert list(read.alone()) == studies(real)[: len(real)]


def test_nothing_is_handed_out_before_all_hold(runs: list[RunDirectory], tmp_path: Path) -> None:
    with runs[-1].events.open("ab") as file:
        file.write(b"x\n")
    with pytest.raises(ChainError), spool(runs, tmp_path, lambda _: True):
        raise AssertionError("it was handed out")


def test_one_run_from_two_places(runs: list[RunDirectory], tmp_path: Path) -> None:
    with pytest.raises(ForeignDirectoryError), spool([*runs, runs[0]], tmp_path, lambda _: True):
        raise AssertionError("it was handed out")


def test_what_runs_have_alike_is_held_once_and_nothing_else_changes(
    runs: list[RunDirectory],
) -> None:
    sharing, alone = Sharing(), [read_study_run(run) for run in runs]
    shared = [sharing.of(run) for run in alone]
    assert shared == alone
    first, fourth = shared[0], shared[3]
    assert first.plan is fourth.plan
    decided = {id(boot.decided.facts) for run in shared for boot in run.boots if boot.decided}
    assert len(decided) == len(first.plan.arms)
