"""A run whose warm cache is gone when it is resumed: filled again and declared as filled here."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kit import zipapp
from records import canonical, schema
from records.cache_listing import CacheBinding, arm_digest
from records.decode import to_object
from records.digest import Digest
from records.errors import BootsFailedError
from records.job import EngineOnHost, Job, ModelOnHost
from records.load import Load
from records.plan import Plan, boot_order
from records.run_directory import RunDirectory
from remote import leftover
from tests.remote import void_runs

WINDOW = void_runs.window(Load("closed", 2, requests=4))
BARE = void_runs.plan({"one": (), "two": ()}, void_runs.WIDE, (WINDOW,))
PLAN = replace(
    BARE,
    blocks=2,
    arms=tuple(replace(arm, cache="warm", env={"WHICH": arm.id}) for arm in BARE.arms),
)


def prepared(place: Path, plan: Plan) -> tuple[Job, list[str]]:
    """A job below this place, written, and the command that carries it out or goes on with it."""
    harness, digest = zipapp.build_named(place / "harness", void_runs.ROOT)
    launcher = (sys.executable, "-I", "-S", str(harness), "reference")
    job = Job(
        run_id="r",
        plan=plan,
        engine=EngineOnHost("reference", launcher, (), {}, "", digest),
        models={"synthetic": ModelOnHost("synthetic", {})},
        run_directory=str(place / "r"),
        scratch=str(place / "scratch"),
        host_salt="s",
    )
    write(place, job)
    return job, [sys.executable, "-I", "-S", str(harness), "run", str(place / "job.json")]


def write(place: Path, job: Job) -> None:
    (place / "job.json").write_bytes(canonical.encode(to_object(job)))


def times_told(run: RunDirectory, boot: str) -> int:
    """How many events there are of this boot so far."""
    text = run.events.read_text("utf-8") if run.events.exists() else ""
    return text.count(f'"boot":"{boot}"')


def boots_of(events: Sequence[object]) -> list[schema.BootStarted]:
    return [event for event in events if isinstance(event, schema.BootStarted)]


def test_no_arm_is_spared_for_a_carried_cache_that_is_gone(tmp_path: Path) -> None:
    job, argv = prepared(tmp_path, PLAN)
    run = RunDirectory(tmp_path / "r")
    second = next(boot.id for boot in boot_order(PLAN) if boot.block == 2)
    with (tmp_path / "log").open("wb") as log:
        began = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        # Started and healthy: its engine is then remembered, and ended below.
        while began.poll() is None and times_told(run, second) < 2:
            time.sleep(0.01)
        assert began.poll() is None, (tmp_path / "log").read_text()
    finally:
        began.kill()
        began.wait()
        leftover.end(tmp_path / "scratch")

    shutil.rmtree(tmp_path / "scratch" / "cache")
    # As had it been carried here: both arms are of those that filled it.
    binding = CacheBinding(Digest.of(b"c"), tuple(arm_digest(arm) for arm in PLAN.arms))
    write(tmp_path, replace(job, cache=binding))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    events = [line.event for line in run.read()]
    (place,) = [at for at, event in enumerate(events) if isinstance(event, schema.RunResumed)]
    boots = boots_of(events[place:])
    assert sorted(boot.arm for boot in boots if not boot.planned) == ["one", "two"]
    assert {boot.compile_cache["declared"] for boot in boots} == {"warm"}
    assert getattr(events[place], "cache_gone", None) is True


def test_a_boot_that_fails_to_fill_the_cache_is_tried_again_before_the_next_block(
    tmp_path: Path,
) -> None:
    dead = tuple(replace(arm, args=("--no-such-option",)) for arm in PLAN.arms[:1])
    _, argv = prepared(tmp_path, replace(PLAN, arms=dead))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == BootsFailedError.exit_code, done.stderr
    boots = boots_of([line.event for line in RunDirectory(tmp_path / "r").read()])
    assert [boot.boot for boot in boots if not boot.planned] == ["prime-one", "prime-one.2"]
