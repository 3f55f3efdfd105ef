"""A warm cache goes from one host to the next as it was: bytes, times, and who filled it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from records import bundle, canonical
from records.cache_listing import WARM, arm_digest, read_listing
from records.decode import to_object
from records.digest import Digest
from records.errors import BundleDamagedError, BundleIncompleteError, FormatError
from records.job import EngineOnHost, Job
from records.plan import Arm
from remote.install.carried_cache import pack, pack_records, place, require_placed
from tests.sealed_run import Shape, make_run, small_plan

# As ninja leaves them: the log is older than the object by less than a second.
NANOSECONDS = 1_796_000_000_123_456_789


def say(_line: str) -> None:
    pass


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host after a run whose arm `draft` is a warm one."""
    root = tmp_path / "host"
    plan = small_plan()
    run_id = "20261130T000000Z-test-plan-abcdef"
    run = make_run(root / "runs" / run_id, plan, Shape())
    engine = EngineOnHost("installed", ("python",), (), {}, plan.engine.lock, Digest.of(b"lock"))
    job = Job(run_id, plan, engine, {}, str(run.path), str(root / "scratch"), "salt")
    (root / bundle.JOB).write_bytes(canonical.encode(to_object(job)))
    cache = root / "scratch" / WARM
    files = {
        "flashinfer/a/sampling.so": b"\x7fELF" * 900,
        "triton/x.cubin": b"",
        "inductor/y": b"y",
    }
    for number, (name, data) in enumerate(files.items()):
        path = cache / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        os.utime(path, ns=(NANOSECONDS + number, NANOSECONDS + number))
    (cache / "flashinfer" / "a" / "sampling.so").chmod(0o755)
    (cache / "triton" / "x.lock").write_bytes(b"held")
    return root


def state(cache: Path) -> dict[str, tuple[bytes, int, bool]]:
    return {
        path.relative_to(cache).as_posix(): (
            path.read_bytes(),
            path.stat().st_mtime_ns,
            os.access(path, os.X_OK),
        )
        for path in cache.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }


def warm_arm(plan_arms: tuple[Arm, ...]) -> Arm:
    return next(arm for arm in plan_arms if arm.cache == "warm")


def test_a_cache_arrives_as_it_was_with_its_times_to_the_nanosecond(root, tmp_path):
    packed = pack(root, tmp_path / "out", 200, say)
    assert len(packed.parts) > 1
    assert all((tmp_path / "out" / part.name).stat().st_size <= 200 for part in packed.parts)
    scratch = tmp_path / "next" / "scratch"
    (scratch / WARM).mkdir(parents=True)
    (scratch / WARM / "left").write_bytes(b"of another run")
    placed = place(tmp_path / "out", scratch, say)
    assert placed == packed == read_listing(tmp_path / "out")
    assert state(scratch / WARM) == state(root / "scratch" / WARM)
    require_placed(scratch, packed.digest)


def test_it_says_which_arms_filled_it_and_where(root, tmp_path):
    listing = pack(root, tmp_path / "out", 1 << 20, say)
    assert listing.arms == (arm_digest(warm_arm(small_plan().arms)),)
    assert listing.engine == Digest.of(b"engine")
    assert (listing.root, listing.run) == (str(root), "20261130T000000Z-test-plan-abcdef")


def test_its_name_is_that_of_its_files_however_it_was_cut(root, tmp_path):
    one = pack(root, tmp_path / "one", 1 << 20, say)
    two = pack(root, tmp_path / "two", 150, say)
    assert one.digest == two.digest
    (root / "scratch" / WARM / "inductor" / "y").write_bytes(b"z")
    assert pack(root, tmp_path / "three", 150, say).digest != one.digest


def test_nothing_is_packed_before_a_warm_arm_had_a_whole_boot(root, tmp_path):
    job = canonical.decode((root / bundle.JOB).read_bytes())
    empty = root / "runs" / "other"
    cold = tuple(replace(arm, cache="cold") for arm in small_plan().arms)
    make_run(empty, replace(small_plan(), arms=cold), Shape())
    plan = to_object(replace(small_plan(), arms=cold))
    changed = {**job, "plan": plan, "run_id": "other", "run_directory": str(empty)}
    (root / bundle.JOB).write_bytes(canonical.encode(changed))
    with pytest.raises(FormatError, match="no boot of a warm arm"):
        pack(root, tmp_path / "out", 1 << 20, say)


def test_a_part_that_is_missing_or_damaged_is_named_and_nothing_placed(root, tmp_path):
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    listing = pack(root, out, 200, say)
    last = out / listing.parts[-1].name
    whole = last.read_bytes()
    last.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(BundleDamagedError, match=last.name):
        place(out, scratch, say)
    last.unlink()
    with pytest.raises(BundleIncompleteError, match=last.name):
        place(out, scratch, say)
    assert not (scratch / WARM).exists()


@pytest.mark.parametrize("fault", ["changed", "added", "removed", "another cache"])
def test_a_run_does_not_start_on_another_cache_than_the_carried_one(root, tmp_path, fault):
    scratch = tmp_path / "scratch"
    digest = place_anew(root, tmp_path, scratch)
    file = scratch / WARM / "inductor" / "y"
    if fault == "changed":
        file.write_bytes(b"x")
    elif fault == "added":
        (file.parent / "more").write_bytes(b"")
    elif fault == "removed":
        file.unlink()
    else:
        digest = Digest.of(b"another")
    with pytest.raises(BundleDamagedError, match="carried cache"):
        require_placed(scratch, digest)


def place_anew(root: Path, tmp_path: Path, scratch: Path) -> Digest:
    pack(root, tmp_path / "out", 1 << 20, say)
    return place(tmp_path / "out", scratch, say).digest


def test_records_are_packed_in_parts_that_tar_reads(root, tmp_path):
    parts = pack_records(root, tmp_path / "out", 3000, say)
    assert len(parts) > 1
    home = tmp_path / "home"
    home.mkdir()
    data = b"".join(path.read_bytes() for path in parts)
    subprocess.run(["tar", "xzf", "-", "-C", str(home)], input=data, check=True)
    (run,) = (root / "runs").iterdir()
    for path in run.rglob("*"):
        if path.is_file():
            assert (home / run.name / path.relative_to(run)).read_bytes() == path.read_bytes()
