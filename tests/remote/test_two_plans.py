"""Two plans of one bundle on one host, to the end: installed, run, packed and home, each whole.

The reference server stands for the engine.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kit.bundle.build import build
from kit.main import main
from kit.planning.plan_file import load_plan
from kit.planning.rehearsal import rehearsal
from records import bundle, canonical, schema
from records.bundle import job_file
from records.cache_listing import WARM, arm_digest, read_listing
from records.decode import from_object
from records.errors import PlanError
from records.job import Job
from records.plan import Plan
from records.run_directory import RunDirectory, runs_in
from tests.bundle_maker import ROOT, Project, make_project, silent, start_install


@dataclass(frozen=True, slots=True)
class Host:
    """Where both plans ran. `before`, `after`: the first run before and after the second plan."""

    carry: Path
    root: Path
    plans: tuple[Plan, Plan]
    before: dict[str, bytes]
    after: dict[str, bytes]
    told: str
    home: Path

    def job(self, name: str) -> Job:
        return from_object(Job, canonical.decode((self.root / name).read_bytes()))

    def events(self, name: str) -> list[object]:
        run = RunDirectory(Path(self.job(name).run_directory))
        assert run.is_sealed
        return [envelope.event for envelope in run.read()]


def two_plans() -> tuple[Plan, Plan]:
    """One block each; two of the second one's arms are those of the first, under other names."""
    pilot = rehearsal(load_plan(ROOT / "kit" / "plans" / "sm90-pilot.toml"))
    small = replace(pilot, windows=pilot.windows[:1], blocks=1)
    first, second = (arm for arm in small.arms if arm.cache == "warm")
    third = tuple("constant:25ms" if word == "constant:20ms" else word for word in first.args)
    arms = replace(first, id="known"), replace(second, id="known-too"), replace(first, args=third)
    return replace(small, arms=(first, second)), replace(small, id="another", arms=arms)


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def run(command: str) -> None:
    subprocess.run(shlex.split(command), check=True, capture_output=True, timeout=120)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("project"), {}, None)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, project: Project) -> Host:
    place = tmp_path_factory.mktemp("host")
    carry, root, home = place / "carry", place / "root", place / "home"
    plans = two_plans()
    build(project.home, plans, None, 100_000, carry, silent)
    first = start_install(carry, root)
    assert first.returncode == 0, first.stderr
    run(first.stdout)
    (root / "scratch" / WARM / "kernel.so").write_bytes(b"what an engine compiled")
    before = {**contents(root / "runs"), bundle.JOB: (root / bundle.JOB).read_bytes()}
    second = start_install(carry, root, "--plan", plans[1].id)
    assert second.returncode == 0, second.stderr
    run(second.stdout)
    after = {**contents(root / "runs"), bundle.JOB: (root / bundle.JOB).read_bytes()}
    harness = str(root / bundle.HARNESS)
    run(shlex.join([sys.executable, "-I", "-S", harness, "pack", "--root", str(root), "--out",
                    str(home), "--cache"]))  # fmt: skip
    return Host(carry, root, plans, before, after, second.stderr, home)


def test_each_plan_has_its_job_and_its_run_below_one_root(host: Host) -> None:
    first, second = (host.job(job_file(p.id, first=p is host.plans[0])) for p in host.plans)
    assert (first.plan, second.plan) == host.plans
    assert [run.path.name for run in runs_in(host.root / "runs")] == [first.run_id, second.run_id]
    assert (first.scratch, first.engine) == (second.scratch, second.engine)


def test_the_second_plan_leaves_the_first_run_as_it_is(host: Host) -> None:
    assert host.before.items() <= host.after.items()
    run_ids = {name.partition("/")[0] for name in host.after}
    assert len(run_ids) == 3  # two runs, and the job of the first


def test_arms_that_the_first_run_filled_are_not_filled_again(host: Host) -> None:
    """One of them boots unmeasured, as any carried cache is tried; all are declared as they are."""
    boots = [e for e in host.events("job-another.json") if isinstance(e, schema.BootStarted)]
    new = host.plans[1].arms[2].id
    assert sorted(boot.arm for boot in boots if not boot.planned) == sorted(["known", new])
    declared = {boot.arm: boot.compile_cache["declared"] for boot in boots}
    assert declared == {"known": "warm, carried", "known-too": "warm, carried", new: "warm"}
    assert {boot.compile_cache["files"] for boot in boots} == {1}
    bound = host.job("job-another.json").cache
    assert bound is not None
    assert set(bound.arms) == {arm_digest(arm) for arm in host.plans[0].arms}
    assert {boot.compile_cache["carried"] for boot in boots} == {str(bound.digest)}
    assert host.job(bundle.JOB).cache is None
    assert f"cache {bound.digest}, as run {host.job(bundle.JOB).run_id} left it" in host.told


def test_both_runs_come_home_and_are_taken_in(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    carried = tmp_path / "carried"
    carried.mkdir()
    data = b"".join(part.read_bytes() for part in sorted(host.home.glob("records-[0-9]*")))
    subprocess.run(["tar", "xzf", "-", "-C", str(carried)], input=data, check=True)
    assert contents(carried) == contents(host.root / "runs")
    monkeypatch.setenv("KIT_OUT", str(tmp_path / "out"))
    monkeypatch.setenv("KIT_HOME", str(tmp_path / "kit"))
    assert main(["fetch-records", "--from", str(carried), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    names = [run.path.name for run in runs_in(carried)]
    assert [(one["run_id"], one["sealed"]) for one in told] == [(name, True) for name in names]
    assert len(names) == 2


def test_the_cache_that_comes_home_serves_the_arms_of_both_on_the_next_host(
    host: Host, project: Project, tmp_path: Path
) -> None:
    listing = read_listing(host.home)
    arms = {arm_digest(arm) for plan in host.plans for arm in plan.arms}
    assert set(listing.arms) == arms
    assert listing.run == host.job("job-another.json").run_id
    said: list[str] = []
    build(project.home, host.plans, None, 100_000, tmp_path / "carry", said.append, host.home)
    filled = [f"{', '.join(arm.id for arm in p.arms)} of {p.id}" for p in host.plans]
    assert f"filled by {'; '.join(filled)}" in said[0]
    for options in ((), ("--plan", "another")):
        done = start_install(tmp_path / "carry", tmp_path / "root", *options)
        assert done.returncode == 0, done.stderr
    for name in (bundle.JOB, "job-another.json"):
        job = from_object(Job, canonical.decode((tmp_path / "root" / name).read_bytes()))
        assert job.cache == listing.binding
    assert contents(tmp_path / "root" / "scratch" / WARM) == {
        "kernel.so": b"what an engine compiled"
    }


def test_a_plan_that_is_not_in_the_bundle_is_refused_with_those_that_are(
    host: Host, tmp_path: Path
) -> None:
    done = start_install(host.carry, tmp_path / "root", "--plan", "sm90-pilot")
    assert done.returncode == PlanError.exit_code
    assert f"there are: {host.plans[0].id}, another" in done.stderr
    assert not (tmp_path / "root").exists()
