"""Deleting where a run was made: only what was asked for, is sealed, and is here byte for byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kit.home import Home
from kit.hosts.host import Done
from kit.hosts.local import LocalHost
from kit.run.delete_on_host import delete_there
from kit.run.fetch import Fetched, fetch_run
from records.errors import ChainError, KitError, UnknownRunError
from tests.sealed_run import make_run, small_plan

RUN = "20261130T100000Z-test-plan-0a1b2c"
OTHER = "20261130T110000Z-test-plan-0a1b2d"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A kit with two sealed runs, and all that stands beside each."""
    home = Home(tmp_path, tmp_path / "kit", tmp_path / "data", tmp_path / "out")
    for name in (RUN, OTHER):
        make_run(home.run(name), small_plan())
        for file in (
            home.job(name),
            home.jobs / f"{name}.pid",
            home.log(name),
            home.scratch(name) / "cache" / "x",
            home.container(name) / "job.json",
        ):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x")
    return home


def fetched(home: Home) -> Fetched:
    return fetch_run(LocalHost(), home.run(RUN), home.data)


def named(home: Home, run_id: str) -> list[Path]:
    return [p for p in home.path.rglob("*") if run_id in p.name]


def test_a_run_that_is_here_is_deleted_there_and_nothing_else(home: Home) -> None:
    others = named(home, OTHER)
    one = fetched(home)
    delete_there(home, LocalHost(), one)
    assert named(home, RUN) == []
    assert named(home, OTHER) == others
    assert (home.data / RUN / "seal.json").is_file()


@pytest.mark.parametrize("name", ["events.jsonl", "seal.json"])
@pytest.mark.parametrize("edited", ["there", "here"])
def test_one_other_byte_on_either_side_and_nothing_is_deleted(
    home: Home, name: str, edited: str
) -> None:
    one = fetched(home)
    path = (home.run(RUN) if edited == "there" else one.directory) / name
    path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))
    before = named(home, RUN)
    with pytest.raises(KitError):
        delete_there(home, LocalHost(), one)
    assert named(home, RUN) == before


def test_a_file_missing_there_is_told(home: Home) -> None:
    one = fetched(home)
    (home.run(RUN) / "seal.json").unlink()
    with pytest.raises(ChainError, match="got sha256:nothing"):
        delete_there(home, LocalHost(), one)


@pytest.mark.parametrize("change", [{"sealed": False}, {"run_id": "../.."}, {"run_id": ".."}])
def test_what_is_not_sealed_or_no_run_is_left_alone(home: Home, change: dict[str, object]) -> None:
    one = replace(fetched(home), **change)  # type: ignore[arg-type]
    with pytest.raises(UnknownRunError):
        delete_there(home, LocalHost(), one)
    assert home.run(RUN).exists()


class ReadOnly(LocalHost):
    """A host on which nothing can be deleted."""

    def run(self, argv, *, stdin=b"", timeout_s=60):
        if argv[0] == "rm":
            return Done(1, "", "rm: cannot remove: Read-only file system")
        return super().run(argv, stdin=stdin, timeout_s=timeout_s)


def test_a_host_that_refuses_is_told(home: Home) -> None:
    with pytest.raises(KitError, match="Read-only file system"):
        delete_there(home, ReadOnly(), fetched(home))
