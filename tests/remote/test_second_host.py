"""From one host to the next: records and cache packed, carried, declared; a host that goes back.

The reference server stands for the engine, two directories for the hosts.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kit.bundle.build import build
from kit.planning.plan_file import load_plan
from kit.planning.rehearsal import rehearsal
from records import bundle, canonical, schema
from records.cache_listing import WARM, read_listing
from records.decode import from_object
from records.errors import BootsFailedError, BundleDamagedError
from records.job import Job
from records.plan import Plan
from records.run_directory import RunDirectory
from tests.bundle_maker import ROOT, Project, make_project, start_install

KERNEL = b"what an engine compiled"


@pytest.fixture(scope="module")
def plan() -> Plan:
    """The pilot, rehearsed with one small window."""
    plan = rehearsal(load_plan(ROOT / "kit" / "plans" / "sm90-pilot.toml"))
    return replace(plan, windows=plan.windows[:1])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("project"), {}, None)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, project: Project, plan: Plan) -> Path:
    """What came home from the first host: its records and its cache, in parts."""
    place = tmp_path_factory.mktemp("first")
    build(project.home, [plan], None, 100_000, place / "carry", lambda _line: None)
    run_installed(place / "carry", place / "root", "--blocks", "1")
    warm = place / "root" / "scratch" / WARM
    (warm / "kernel.so").write_bytes(KERNEL)
    harness = str(place / "root" / bundle.HARNESS)
    subprocess.run(
        [sys.executable, "-I", "-S", harness, "pack", "--root", str(place / "root"), "--out",
         str(place / "home"), "--cache"],
        check=True, capture_output=True,
    )  # fmt: skip
    return place / "home"


@pytest.fixture(scope="module")
def second(
    tmp_path_factory: pytest.TempPathFactory, project: Project, plan: Plan, home: Path
) -> tuple[Path, list[object]]:
    """A second host with that cache, which goes back before any block would end."""
    place = tmp_path_factory.mktemp("second")
    build(project.home, [plan], None, 100_000, place / "carry", lambda _line: None, home)
    run_installed(place / "carry", place / "root", "--ends-in", "1")
    (run,) = (place / "root" / "runs").iterdir()
    assert RunDirectory(run).is_sealed
    return place / "root", [envelope.event for envelope in RunDirectory(run).read()]


def run_installed(carry: Path, root: Path, *options: str) -> None:
    done = start_install(carry, root, *options)
    assert done.returncode == 0, done.stderr
    subprocess.run(shlex.split(done.stdout), check=True, capture_output=True, timeout=120)


def of(events: list[object], kind: type) -> list[object]:
    return [event for event in events if isinstance(event, kind)]


def test_what_came_home_is_the_run_and_the_cache(home: Path, plan: Plan, tmp_path: Path) -> None:
    data = b"".join(part.read_bytes() for part in sorted(home.glob("records-[0-9]*")))
    subprocess.run(["tar", "xzf", "-", "-C", str(tmp_path)], input=data, check=True)
    (run,) = tmp_path.iterdir()
    events = [envelope.event for envelope in RunDirectory(run).read()]
    assert RunDirectory(run).is_sealed
    primed = [boot.arm for boot in of(events, schema.BootStarted) if not boot.planned]
    assert sorted(primed) == sorted(arm.id for arm in plan.arms)
    assert [file.path for file in read_listing(home).files] == ["kernel.so"]
    assert {boot.compile_cache["declared"] for boot in of(events, schema.BootStarted)} == {"warm"}


@pytest.fixture(scope="module")
def third(
    tmp_path_factory: pytest.TempPathFactory, project: Project, plan: Plan, home: Path
) -> list[object]:
    """A host with that cache that stays."""
    place = tmp_path_factory.mktemp("third")
    build(project.home, [plan], None, 100_000, place / "carry", lambda _line: None, home)
    run_installed(place / "carry", place / "root", "--blocks", "1")
    (run,) = (place / "root" / "runs").iterdir()
    return [envelope.event for envelope in RunDirectory(run).read()]


def test_a_carried_cache_is_declared_and_one_boot_of_those_that_filled_it_is_enough(
    third: list[object], home: Path
) -> None:
    boot, *measured = of(third, schema.BootStarted)
    assert boot.planned == ""
    assert all(other.planned for other in measured)
    assert boot.compile_cache["declared"] == "warm, carried"
    assert boot.compile_cache["carried"] == str(read_listing(home).digest)
    assert boot.compile_cache["files"] == 1


def test_blocks_that_would_not_end_in_time_are_left_out_whole_and_the_run_is_sealed(
    second: tuple[Path, list[object]],
) -> None:
    (ended,) = of(second[1], schema.RunEnded)
    assert (ended.completed, ended.failed, ended.left_out) == (0, 0, (1, 2))


def test_no_cache_is_filled_for_a_block_that_is_left_out(
    second: tuple[Path, list[object]],
) -> None:
    assert of(second[1], schema.BootStarted) == []


def test_caches_are_filled_right_before_the_first_block_that_needs_them(
    tmp_path: Path, project: Project, plan: Plan
) -> None:
    first, *others = plan.arms
    later = tuple(replace(arm, blocks=(2,)) for arm in others)
    staged = replace(plan, blocks=2, arms=(replace(first, blocks=(1,)), *later))
    build(project.home, [staged], None, 100_000, tmp_path / "carry", lambda _line: None)
    run_installed(tmp_path / "carry", tmp_path / "root")
    (run,) = (tmp_path / "root" / "runs").iterdir()
    events = [envelope.event for envelope in RunDirectory(run).read()]
    boots = [(boot.arm, bool(boot.planned)) for boot in of(events, schema.BootStarted)]
    names = [arm.id for arm in others]
    assert boots[:2] == [(first.id, False), (first.id, True)]
    assert boots[2 : 2 + len(names)] == [(name, False) for name in names]
    assert sorted(boots[2 + len(names) :]) == sorted((name, True) for name in names)


def test_a_run_does_not_begin_on_a_cache_that_was_changed(
    tmp_path: Path, project: Project, plan: Plan, home: Path
) -> None:
    build(project.home, [plan], None, 100_000, tmp_path / "carry", lambda _line: None, home)
    done = start_install(tmp_path / "carry", tmp_path / "root")
    (tmp_path / "root" / "scratch" / WARM / "kernel.so").write_bytes(b"another")
    failed = subprocess.run(shlex.split(done.stdout), capture_output=True, text=True, check=False)
    assert failed.returncode == BundleDamagedError.exit_code
    assert "kernel.so has another digest" in failed.stderr
    job = from_object(Job, canonical.decode((tmp_path / "root" / bundle.JOB).read_bytes()))
    assert not RunDirectory(Path(job.run_directory)).is_sealed


def test_an_arm_that_does_not_start_is_given_up_after_a_second_try(
    tmp_path: Path, project: Project, plan: Plan
) -> None:
    first, *others = plan.arms
    broken = replace(plan, blocks=3, arms=(replace(first, args=("--no-such-option",)), *others))
    build(project.home, (broken,), None, 100_000, tmp_path / "carry", lambda _line: None)
    done = start_install(tmp_path / "carry", tmp_path / "root")
    ran = subprocess.run(shlex.split(done.stdout), capture_output=True, check=False, timeout=120)
    assert ran.returncode == BootsFailedError.exit_code, ran.stderr
    (run,) = (tmp_path / "root" / "runs").iterdir()
    events = [envelope.event for envelope in RunDirectory(run).read()]
    boots = of(events, schema.BootStarted)
    assert [b.boot for b in boots if b.arm == first.id and not b.planned] == [
        f"prime-{first.id}",
        f"prime-{first.id}.2",
    ]
    assert sum(b.arm == first.id and bool(b.planned) for b in boots) == 3
