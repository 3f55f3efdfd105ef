"""Several plans in one bundle: one engine, every model and job once, and nothing new for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kit.bundle.build import build
from kit.main import main
from records import bundle, canonical
from records.bundle import CarriedPlan, Manifest, read_manifest
from records.decode import from_object, to_object
from records.errors import BundleDamagedError, FormatError, PlanError
from records.job import Job
from records.plan import Plan
from tests.bundle_maker import Project, host_with, make_project, silent

TinyWheel = Callable[..., Path]
PART_BYTES = 1000


@pytest.fixture
def project(tmp_path: Path, tiny_wheel: TinyWheel, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Two models, the second a copy of the first under another name."""
    wheel = tiny_wheel("alpha", {"alpha/__init__.py": b"W = 1\n"})
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    project = make_project(tmp_path, {"alpha": wheel}, None)
    lock = project.home.root / "images" / "models.lock.json"
    locked = json.loads(lock.read_text())
    locked["models"]["also"] = locked["models"]["tiny"]
    lock.write_text(json.dumps(locked))
    (project.home.models / "also").mkdir()
    for file in (project.home.models / "tiny").iterdir():
        (project.home.models / "also" / file.name).write_bytes(file.read_bytes())
    return project


@pytest.fixture
def second(project: Project) -> Plan:
    """A plan of the same engine, of both models."""
    first, *others = project.plan.arms
    return replace(project.plan, id="second", arms=(replace(first, model="also"), *others))


def built(project: Project, out: Path, *plans: Plan) -> Manifest:
    return build(project.home, plans, host_with(), PART_BYTES, out, silent).manifest


def test_engine_and_models_are_packed_once_and_each_plan_has_its_job(
    tmp_path: Path, project: Project, second: Plan
) -> None:
    one = built(project, tmp_path / "one", project.plan)
    two = built(project, tmp_path / "two", project.plan, second)
    paths = [content.path for content in two.content]
    assert paths == [*(c.path for c in one.content), "models/also/config.json"]
    assert two.plans == (
        CarriedPlan(project.plan.id, project.plan.digest, "job.json"),
        CarriedPlan("second", second.digest, "job-second.json"),
    )
    for carried, plan in zip(two.plans, (project.plan, second), strict=True):
        data = (tmp_path / "two" / carried.job).read_bytes()
        assert from_object(Job, canonical.decode(data)).plan == plan
    assert read_manifest(tmp_path / "two") == two
    streams = [
        b"".join((tmp_path / name / part.name).read_bytes() for part in manifest.parts)
        for name, manifest in (("one", one), ("two", two))
    ]
    assert streams[1].startswith(streams[0][:-1024])  # the end of an archive
    assert one.files["job.json"] == two.files["job.json"]


def test_the_manifest_of_one_plan_has_the_keys_that_it_always_had(
    tmp_path: Path, project: Project
) -> None:
    built(project, tmp_path / "one", project.plan)
    manifest = canonical.decode((tmp_path / "one" / bundle.MANIFEST).read_bytes())
    assert sorted(manifest) == [
        "content", "files", "format", "lock", "lock_digest", "parts", "plan", "plan_digest",
        "relies_on", "target",
    ]  # fmt: skip
    assert sorted(manifest["files"]) == [bundle.STARTER, bundle.HARNESS, bundle.JOB]


def test_a_bundle_of_fewer_plans_leaves_no_job_of_the_others(
    tmp_path: Path, project: Project, second: Plan
) -> None:
    built(project, tmp_path / "carry", project.plan, second)
    built(project, tmp_path / "carry", project.plan)
    assert not (tmp_path / "carry" / "job-second.json").exists()


def test_plans_of_two_engines_are_refused(tmp_path: Path, project: Project, second: Plan) -> None:
    other = replace(second, engine=replace(second.engine, lock="wheels-other.lock"))
    with pytest.raises(PlanError, match=r"plan second is of engine .*wheels-other\.lock.*one eng"):
        built(project, tmp_path / "carry", project.plan, other)
    assert not (tmp_path / "carry").exists()


def test_a_plan_that_is_named_twice_is_refused(tmp_path: Path, project: Project) -> None:
    with pytest.raises(PlanError, match="two plans are called sm90-pilot"):
        built(project, tmp_path / "carry", project.plan, project.plan)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"plan": "sm90-pilot", "job": "job-sm90-pilot.json"}, "two plans are called"),
        ({"plan": "second", "job": "harness.pyz"}, "is no job of plan"),
        ({"plan": "third", "job": "job-third.json"}, "is no file"),
    ],
)
def test_a_manifest_that_names_no_job_of_a_plan_is_refused(
    tmp_path: Path, project: Project, second: Plan, more: dict[str, str], words: str
) -> None:
    manifest = to_object(built(project, tmp_path / "carry", project.plan, second))
    changed = {**manifest["more_plans"][0], **more}
    with pytest.raises(FormatError, match=words):
        from_object(Manifest, {**manifest, "more_plans": [changed]})


def test_verify_names_the_plans_and_holds_every_job_to_account(
    tmp_path: Path, project: Project, second: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    carry = tmp_path / "carry"
    built(project, carry, project.plan, second)
    assert main(["bundle", "verify", str(carry)]) == 0
    shown = capsys.readouterr().out
    assert f"plan sm90-pilot {project.plan.digest}, job.json" in shown
    assert f"plan second {second.digest}, job-second.json" in shown
    assert main(["bundle", "verify", str(carry), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["plans"]
    assert [one["plan"] for one in told] == ["sm90-pilot", "second"]
    with (carry / "job-second.json").open("ab") as file:
        file.write(b"!")
    assert main(["bundle", "verify", str(carry)]) == BundleDamagedError.exit_code
    assert "job-second.json: got" in capsys.readouterr().err
