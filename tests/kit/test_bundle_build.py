"""A bundle holds what the host lacks, nothing else, and the same bytes each time."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

import pytest

from kit.bundle.build import build
from kit.bundle.cut import parse_size
from kit.bundle.download import needed_glibc, platforms
from kit.bundle.host_list import HostList, read_host_list
from kit.bundle.requirements import relied_on
from kit.bundle.wheel_lock import LockedWheel, names_in, read_wheel_lock
from kit.hosts.offline import OfflineHost, job_for
from kit.main import main
from records import bundle, canonical
from records.bundle import Manifest, Target, read_manifest
from records.decode import to_object
from records.digest import Digest
from records.errors import (
    BundleDamagedError,
    BundleIncompleteError,
    ForeignDirectoryError,
    FormatError,
    PlanError,
    ProvisionError,
)
from tests.bundle_maker import HERE, ROOT, Project, host_with, make_project

TinyWheel = Callable[..., Path]
IMAGES = ROOT / "images"


@pytest.fixture
def project(tmp_path: Path, tiny_wheel: TinyWheel, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A lock of alpha and beta, which pip finds without a network."""
    wheels = {
        name: tiny_wheel(name, {f"{name}/__init__.py": b"W = 1\n"}) for name in ("alpha", "beta")
    }
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels["alpha"].parent))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels["alpha"].parent))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    return make_project(tmp_path, wheels, None)


def paths(manifest: Manifest) -> list[str]:
    return [one.path for one in manifest.content]


def everything(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_what_the_host_has_at_this_version_stays_behind(tmp_path: Path, project: Project) -> None:
    built = project.build(tmp_path / "carry", host_with(beta="1.0"))
    assert paths(built.manifest) == ["wheels/alpha-1.0-py3-none-any.whl", "models/tiny/config.json"]
    assert [wheel.name for wheel in built.wheels.left_behind] == ["beta"]
    other = project.build(tmp_path / "carry", host_with(beta="0.9"))
    assert "wheels/beta-1.0-py3-none-any.whl" in paths(other.manifest)
    assert not other.wheels.left_behind


def test_two_builds_give_the_same_bytes(tmp_path: Path, project: Project) -> None:
    first = project.build(tmp_path / "one")
    for number, path in enumerate(sorted(project.home.path.rglob("*"))):
        os.utime(path, (1_000_000 + number, 2_000_000 + number))
    second = project.build(tmp_path / "two")
    assert first.manifest.digest == second.manifest.digest
    assert everything(tmp_path / "one") == everything(tmp_path / "two")
    assert len(first.manifest.parts) > 1
    assert read_manifest(tmp_path / "one") == first.manifest


def test_a_bundle_is_replaced_whole_and_anything_else_left_alone(
    tmp_path: Path, project: Project
) -> None:
    many = project.build(tmp_path / "carry", part_bytes=1000).manifest.parts
    few = project.build(tmp_path / "carry", part_bytes=100_000).manifest.parts
    assert len(many) > len(few) == 1
    assert not (tmp_path / "carry" / many[-1].name).exists()
    (tmp_path / "carry" / "thesis.tex").write_text("text")
    before = everything(tmp_path / "carry")
    with pytest.raises(ForeignDirectoryError, match=r"thesis\.tex"):
        project.build(tmp_path / "carry")
    assert everything(tmp_path / "carry") == before


def test_a_wheel_that_changed_here_is_never_packed(tmp_path: Path, project: Project) -> None:
    project.build(tmp_path / "carry")
    (stored,) = project.home.path.glob("wheels/*/alpha-*.whl")
    stored.write_bytes(stored.read_bytes() + b"!")
    with pytest.raises(ProvisionError, match=r"alpha-1\.0.*: got \d+ bytes, sha256:.*want"):
        project.build(tmp_path / "carry")
    assert not (tmp_path / "carry" / bundle.MANIFEST).exists()
    with pytest.raises(BundleDamagedError):
        read_manifest(tmp_path / "carry")


def test_a_model_that_differs_from_its_lock_is_never_packed(
    tmp_path: Path, project: Project
) -> None:
    (project.home.models / "tiny" / "config.json").write_text("{}")
    with pytest.raises(ProvisionError, match=r"config\.json: got sha256:.*, want sha256:"):
        project.build(tmp_path / "carry")


def test_a_model_that_is_not_here_says_how_to_make_it(tmp_path: Path, project: Project) -> None:
    (project.home.models / "tiny" / "config.json").unlink()
    (project.home.models / "tiny").rmdir()
    with pytest.raises(ProvisionError, match="model tiny is not in") as caught:
        project.build(tmp_path / "carry")
    assert "make reproduce" in caught.value.remedy


def test_a_lock_that_is_not_there_is_made_for_the_host_and_then_used(
    tmp_path: Path, project: Project
) -> None:
    images = project.home.root / "images"
    before = project.build(tmp_path / "one").manifest
    lock = images / "wheels-test.lock"
    lock.unlink()
    with pytest.raises(ProvisionError, match=r"wheels-test\.in"):
        project.build(tmp_path / "two")
    (images / "wheels-test.in").write_text("alpha==1.0\nbeta\ngamma\n")
    (images / "wheels-test.override").write_text("gamma ; sys_platform == 'never'\n")
    made = project.build(tmp_path / "two", host_with(beta="1.0")).manifest
    assert [wheel.name for wheel in read_wheel_lock(lock)] == ["alpha"]
    assert lock.read_text().startswith("# What wheels-test.in needs on CPython")
    assert paths(made) == [path for path in paths(before) if "beta" not in path]
    kept = lock.read_bytes()
    again = project.build(tmp_path / "three", host_with(beta="1.0"))
    assert again.manifest.digest == made.digest
    assert lock.read_bytes() == kept


def test_a_plan_with_an_engine_needs_a_host(tmp_path: Path, project: Project) -> None:
    with pytest.raises(PlanError, match="needs a host") as caught:
        build(project.home, [project.plan], None, 4000, tmp_path / "carry", print)
    assert caught.value.remedy == "--host-freeze FILE"


def test_verify_tells_the_bundle_or_what_is_wrong_with_it(
    tmp_path: Path, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    carry = tmp_path / "carry"
    digest = project.build(carry, part_bytes=1000).manifest.digest
    assert main(["bundle", "verify", str(carry)]) == 0
    assert str(digest) in capsys.readouterr().out
    part = carry / "part-001"
    whole = part.read_bytes()
    part.unlink()
    assert main(["bundle", "verify", str(carry)]) == BundleIncompleteError.exit_code
    assert "missing: part-001" in capsys.readouterr().err
    part.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert main(["bundle", "verify", str(carry)]) == BundleDamagedError.exit_code
    shown = capsys.readouterr()
    assert "part-001: got 1000 bytes" in shown.err
    assert shown.out == ""


def wheel_that_needs(directory: Path, name: str, needs: Iterable[str]) -> tuple[LockedWheel, Path]:
    path = directory / f"{name}-1.0-py3-none-any.whl"
    lines = "".join(f"Requires-Dist: {need}\n" for need in needs)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nVersion: 1.0\n{lines}")
        archive.writestr(f"{name}/_vendor/x-1.dist-info/METADATA", "Name: x\nVersion: 1\n")
    return LockedWheel(name, "1.0", Digest.of(name.encode())), path


def test_what_the_wheels_rely_on_is_found_through_markers_and_extras(tmp_path: Path) -> None:
    target = Target("3.12", "x86_64", "2.39")
    host = HostList(target, {"numpy": "2.1", "click": "8.0", "uvloop": "0.2", "unused": "1"})
    wheels = dict(
        [
            wheel_that_needs(tmp_path, "engine", (
                "NumPy>=2", "server[fast]", "left_out>3", "old ; python_version < '3.12'",
                "win ; sys_platform == 'win32'", "doc ; extra == 'doc'",
            )),
            wheel_that_needs(tmp_path, "server", (
                "click (>=8)", "uvloop ; extra == 'fast'", "slow ; extra == 'slow'",
            )),
        ]
    )  # fmt: skip
    pins = relied_on(wheels, host, frozenset({"left-out"}), "x.lock")
    assert [(pin.name, pin.version) for pin in pins] == [
        ("click", "8.0"),
        ("numpy", "2.1"),
        ("uvloop", "0.2"),
    ]


def test_a_requirement_that_nobody_meets_is_named_with_who_has_what(tmp_path: Path) -> None:
    host = HostList(Target("3.12", "x86_64", "2.39"), {"numpy": "1.26"})
    wheels = dict(
        [
            wheel_that_needs(tmp_path, "engine", ("numpy>=2", "server==2.0", "absent")),
            wheel_that_needs(tmp_path, "server", ()),
        ]
    )
    with pytest.raises(ProvisionError) as caught:
        relied_on(wheels, host, frozenset(), "x.lock")
    for words in (
        "engine needs numpy>=2, the host has 1.26",
        "engine needs server==2.0, the bundle brings 1.0",
        "engine needs absent, nobody has it",
    ):
        assert words in caught.value.message


def test_the_committed_lock_brings_nothing_that_its_host_has() -> None:
    locked = read_wheel_lock(IMAGES / "wheels-sm90-offline.lock")
    host = read_host_list(IMAGES / "wheels-sm90-offline.host")
    assert host.target == Target("3.12", "x86_64", "2.39")
    assert [wheel for wheel in locked if host.have.get(wheel.name) == wheel.version] == []
    left_out = names_in(IMAGES / "wheels-sm90-offline.override")
    assert left_out
    assert not left_out & {wheel.name for wheel in locked}
    assert [wheel.name for wheel in read_wheel_lock(IMAGES / "wheels-installer.lock")] == ["uv"]


def test_a_host_list_is_read_with_its_facts_or_those_given(tmp_path: Path) -> None:
    path = tmp_path / "host.txt"
    pins = "Zope.Interface==6.0\ntorch==2.11.0+cu130\n-e git+ssh://x#egg=y\nz @ file:///z.whl\n"
    path.write_text(pins)
    with pytest.raises(PlanError, match="the host's python") as caught:
        read_host_list(path)
    assert "--python X.Y" in caught.value.remedy
    host = read_host_list(path, python="3.10", glibc="2.35")
    assert host.have == {"zope-interface": "6.0", "torch": "2.11.0+cu130"}
    assert host.target == Target("3.10", "x86_64", "2.35")
    path.write_text("# python 3.12\n# machine aarch64\n# glibc 2.39\n" + pins)
    assert read_host_list(path).target == Target("3.12", "aarch64", "2.39")
    path.write_text("nothing here\n")
    with pytest.raises(PlanError, match="names no distribution"):
        read_host_list(path, HERE, "2.36")
    with pytest.raises(PlanError, match="No such file"):
        read_host_list(tmp_path / "none")


@pytest.mark.parametrize(
    "entry",
    [
        "alpha==1.0\n",
        f"alpha==1.0 --hash=sha256:{'0' * 64} --hash=sha256:{'1' * 64}\n",
        f"alpha>=1.0 --hash=sha256:{'0' * 64}\n",
        f"alpha==1.0 --hash=sha256:{'0' * 64}\nAlpha==1.1 --hash=sha256:{'1' * 64}\n",
        f"alpha==1.0 --hash=sha256:{'0' * 64}\nrubbish\n",
    ],
)
def test_a_lock_that_leaves_a_choice_is_refused(tmp_path: Path, entry: str) -> None:
    path = tmp_path / "x.lock"
    path.write_text(f"# head\n{entry}")
    with pytest.raises(FormatError, match="expected name==version with one --hash"):
        read_wheel_lock(path)


@pytest.mark.parametrize(
    ("text", "size"),
    [("62.5MB", 62_500_000), ("60MiB", 60 << 20), ("4000", 4000), ("1 GB", 10**9)],
)
def test_sizes_are_read_exactly(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "1e6", "-5MB", "62,5MB", "5mb", "999"])
def test_what_is_no_size_of_a_part_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match=r"not a size|too small"):
        parse_size(text)


def test_the_glibc_that_wheels_need_is_told_by_their_names() -> None:
    names = (
        "a-1-py3-none-any.whl",
        "b-1-cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        "c-1-cp312-cp312-manylinux_2_28_x86_64.manylinux_2_31_x86_64.whl",
    )
    assert needed_glibc(map(Path, names)) == "2.28"
    assert needed_glibc(map(Path, names[:2])) == "2.17"
    assert needed_glibc([]) == "2.0"
    tags = platforms(Target("3.12", "x86_64", "2.31"))
    assert tags[0] == "manylinux_2_31_x86_64"
    assert "manylinux2014_x86_64" in tags
    assert not any("_2_34_" in tag for tag in tags)


def test_install_here_passes_on_what_the_starter_says(
    tmp_path: Path, project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.build(tmp_path / "carry", part_bytes=1000)
    (tmp_path / "carry" / "part-000").unlink()
    argv = ["bundle", "install", str(tmp_path / "carry"), "--root", str(tmp_path / "root")]
    assert main([*argv, "--json"]) == BundleIncompleteError.exit_code
    assert "missing: part-000" in capfd.readouterr().err


def test_a_job_made_apart_agrees_with_the_bundles(tmp_path: Path, project: Project) -> None:
    carried = project.build(tmp_path / "carry").directory
    text = (carried / bundle.JOB).read_text()
    words = {bundle.ROOT_WORD: "/root/kit", bundle.PYTHON_WORD: "/opt/python"}
    for word, meaning in {**words, bundle.RUN_WORD: "run-1"}.items():
        text = text.replace(word, meaning)
    root = PurePosixPath("/root/kit")
    host = OfflineHost(root, PurePosixPath("/opt/python"), (root / bundle.SITE,), "", "")
    harness = Digest.of((carried / bundle.HARNESS).read_bytes())
    job = job_for(project.home, project.plan, "run-1", host, harness)
    assert canonical.encode(to_object(job)) == text.encode()
