"""A root that several plans share: whose job is kept, whose is new, and on which cache it begins.

Two plans of tests/sealed_run.py stand for those of a bundle; their runs are made, not measured.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kit.run.launch import build_harness
from records import bundle, canonical, schema
from records.bundle import job_file
from records.cache_listing import CARRIED, WARM, CacheListing, arm_digest
from records.decode import to_object
from records.digest import Digest
from records.errors import BundleDamagedError, FormatError, RunBusyError
from records.job import EngineOnHost, Job
from records.plan import Plan
from records.run_directory import RunDirectory
from remote.install.carried_cache import pack, require_placed
from remote.install.fillings import filling_of
from remote.install.job import Here, jobs_below
from remote.install.settle import require_idle, settle
from tests.bundle_maker import make_project
from tests.sealed_run import Shape, make_run, small_plan

ENGINE = EngineOnHost("installed", ("python",), (), {}, "test.lock", Digest.of(b"lock"))
SECOND = job_file("second", first=False)


def say(_line: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Shared:
    """A root with the templates of two plans beside it."""

    root: Path
    carry: Path
    carried: CacheListing | None = None

    def settled(self, name: str, *, new: bool = False, blocks: tuple[int, ...] = ()) -> Job:
        here = Here(self.root, "/usr/bin/python3", (), (), (), blocks)
        return settle(self.carry / name, here, self.carried, new=new, say=say)[0]

    def run(self, job: Job, *, whole: bool = True) -> None:
        """A run of the job, which leaves a file in the cache; not `whole`: up to its first boot."""
        directory = Path(job.run_directory)
        made = make_run(directory, job.plan, Shape(seal=whole))
        if not whole:
            lines = made.events.read_bytes().splitlines(keepends=True)
            begun = next(i for i, line in enumerate(lines) if b'"type":"boot.started"' in line)
            made.events.write_bytes(b"".join(lines[: begun + 1]) + b'{"prev":"sha')
        self.cache.mkdir(parents=True, exist_ok=True)
        (self.cache / f"{job.plan.id}.so").write_bytes(job.run_id.encode())

    @property
    def cache(self) -> Path:
        return self.root / bundle.SCRATCH / WARM

    def refused(self, job: Job) -> str:
        """What the harness advises where it would not begin the job on the cache as it stands."""
        try:
            if job.cache is not None:
                require_placed(self.root / bundle.SCRATCH, job.cache.digest)
        except BundleDamagedError as error:
            return error.remedy
        return ""


def template(plan: Plan) -> bytes:
    root = bundle.ROOT_WORD
    directory = f"{root}/{bundle.RUNS}/{bundle.RUN_WORD}"
    job = Job(bundle.RUN_WORD, plan, ENGINE, {}, directory, f"{root}/{bundle.SCRATCH}", "salt")
    return canonical.encode(to_object(job))


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    carry = tmp_path / "carry"
    carry.mkdir()
    (carry / bundle.JOB).write_bytes(template(small_plan()))
    (carry / SECOND).write_bytes(template(replace(small_plan(), id="second")))
    (tmp_path / "root").mkdir()
    return Shared(tmp_path / "root", carry)


@pytest.fixture
def with_cache(shared: Shared, tmp_path: Path) -> Shared:
    """The same, with a cache that another host's run of the first plan filled."""
    other = Shared(tmp_path / "other", shared.carry)
    other.root.mkdir()
    other.run(other.settled(bundle.JOB))
    listing = pack(other.root, shared.root / CARRIED, 1 << 20, say)
    return replace(shared, carried=listing)


def warm() -> set[Digest]:
    return {arm_digest(arm) for arm in small_plan().arms if arm.cache == "warm"}


def files(shared: Shared) -> set[str]:
    return {path.name for path in shared.cache.iterdir()}


def test_jobs_do_not_touch_each_other(shared: Shared) -> None:
    first, second = shared.settled(bundle.JOB), shared.settled(SECOND)
    assert jobs_below(shared.root) == {bundle.JOB: first, SECOND: second}
    assert shared.settled(bundle.JOB) == first
    assert shared.settled(SECOND, new=True).run_id != second.run_id
    assert jobs_below(shared.root)[bundle.JOB] == first


def test_until_a_run_has_booted_every_plan_begins_on_the_carried_cache(with_cache: Shared) -> None:
    for name in (bundle.JOB, SECOND):
        job = with_cache.settled(name)
        assert with_cache.carried is not None
        assert job.cache == with_cache.carried.binding
        assert not with_cache.refused(job)


def test_what_a_run_filled_is_kept_and_listed_for_the_next_plan(with_cache: Shared) -> None:
    first = with_cache.settled(bundle.JOB)
    with_cache.run(first)
    second = with_cache.settled(SECOND)
    assert second.cache is not None
    assert second.cache != first.cache
    assert set(second.cache.arms) == warm()
    assert not with_cache.refused(second)
    assert (with_cache.cache / "test-plan.so").read_bytes() == first.run_id.encode()


def test_a_plan_installed_too_early_is_refused_and_keeps_its_run_when_installed_again(
    with_cache: Shared,
) -> None:
    first, early = with_cache.settled(bundle.JOB), with_cache.settled(SECOND)
    with_cache.run(first)
    assert "install this plan again" in with_cache.refused(early)
    again = with_cache.settled(SECOND)
    assert again.run_id == early.run_id
    assert not with_cache.refused(again)


def test_a_run_that_has_booted_goes_on_with_the_cache_that_it_began_on(with_cache: Shared) -> None:
    first = with_cache.settled(bundle.JOB)
    with_cache.run(first, whole=False)
    second = with_cache.settled(SECOND)
    with_cache.run(second)
    assert with_cache.settled(bundle.JOB) == first
    assert with_cache.settled(SECOND) == second
    assert files(with_cache) == {"test-plan.so", "second.so"}


@pytest.mark.parametrize("change", [{"new": True}, {"blocks": (1,)}])
def test_another_run_of_a_plan_takes_nothing_from_the_other_plans(
    with_cache: Shared, change: dict[str, object]
) -> None:
    first = with_cache.settled(bundle.JOB)
    with_cache.run(first, whole=False)
    second = with_cache.settled(SECOND)
    with_cache.run(second)
    other = with_cache.settled(SECOND, **change)  # type: ignore[arg-type]
    assert other.run_id != second.run_id
    assert not with_cache.refused(other)
    assert files(with_cache) == {"test-plan.so", "second.so"}
    assert with_cache.settled(bundle.JOB) == first


def test_a_run_that_filled_nothing_yet_declares_nothing_for_others(shared: Shared) -> None:
    first = shared.settled(bundle.JOB)
    shared.run(first, whole=False)
    filling = filling_of(first)
    assert (filling.booted, filling.whole, filling.arms) == (True, False, frozenset())
    assert shared.settled(SECOND).cache is None
    with pytest.raises(FormatError, match="no boot of a warm arm has ended"):
        pack(shared.root, shared.root / "home", 1 << 20, say)


def test_what_was_filled_before_the_cache_was_lost_does_not_count(shared: Shared) -> None:
    """A host that came back without its scratch: the resumed run says so, and fills it anew."""
    resumed = []

    def lost(event: object) -> object:
        if isinstance(event, schema.RunEnded):
            resumed.append(event)
            return schema.RunResumed(Digest.of(b"harness"), "", event.clock, cache_gone=True)
        return event

    first = shared.settled(bundle.JOB)
    make_run(Path(first.run_directory), first.plan, Shape(edit=lost))
    assert resumed
    filling = filling_of(first)
    assert (filling.booted, filling.whole, filling.arms) == (True, False, frozenset())


def test_what_another_engine_filled_does_not_count(shared: Shared) -> None:
    def other_engine(event: object) -> object:
        return replace(event, digest=Digest.of(b"other")) if hasattr(event, "runtime") else event

    first = shared.settled(bundle.JOB)
    make_run(Path(first.run_directory), first.plan, Shape(edit=other_engine))
    assert filling_of(first).engine == Digest.of(b"other")
    second = shared.settled(SECOND)
    arms = tuple(replace(arm, args=(*arm.args, "--seed", "1")) for arm in second.plan.arms)
    changed = replace(second, run_id="z", plan=replace(second.plan, arms=arms), cache=None,
                      run_directory=str(shared.root / bundle.RUNS / "z"))  # fmt: skip
    (shared.root / SECOND).write_bytes(canonical.encode(to_object(changed)))
    shared.run(changed)
    listing = pack(shared.root, shared.root / "home", 1 << 20, say)
    assert set(listing.arms) == {arm_digest(arm) for arm in arms if arm.cache == "warm"}


@contextmanager
def measured(lock: Path, run_id: str) -> Iterator[None]:
    """The host's lock, held as a run's harness holds it."""
    lock.write_text(f"run {run_id}\n")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_nothing_is_installed_beside_a_run_of_another_plan_that_is_measured(
    shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock"
    monkeypatch.setenv("KIT_HOST_LOCK", str(lock))
    first = shared.settled(bundle.JOB)
    shared.settled(SECOND)
    with measured(lock, first.run_id):
        with pytest.raises(RunBusyError, match=f"run {first.run_id}, of plan test-plan"):
            require_idle(shared.root, SECOND)
        require_idle(shared.root, bundle.JOB)  # its own may be installed again, as ever
    require_idle(shared.root, SECOND)


def test_a_job_is_not_begun_while_the_run_of_another_plan_is_measured(
    shared: Shared, tmp_path: Path
) -> None:
    first, second = shared.settled(bundle.JOB), shared.settled(SECOND)
    harness, _ = build_harness(make_project(tmp_path, {}, None).home)
    argv = [sys.executable, "-I", "-S", str(harness), "run", str(shared.root / SECOND)]
    lock = tmp_path / "lock"
    with measured(lock, first.run_id):
        env = {**os.environ, "KIT_HOST_LOCK": str(lock)}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == RunBusyError.exit_code, done.stderr
    assert f"run {first.run_id} is being measured on this host" in done.stderr
    assert not RunDirectory(Path(second.run_directory)).events.exists()
