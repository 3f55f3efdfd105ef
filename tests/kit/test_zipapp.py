from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from kit import zipapp
from records.digest import Digest

ROOT = Path(__file__).parents[2]


def copied_tree(target: Path) -> Path:
    for package in zipapp.PACKAGES:
        shutil.copytree(
            ROOT / package, target / package, ignore=shutil.ignore_patterns("__pycache__", "data")
        )
    return target


def test_the_same_tree_gives_the_same_bytes_whatever_surrounds_it(tmp_path: Path) -> None:
    tree = copied_tree(tmp_path / "tree")
    one = zipapp.build(tmp_path / "one.pyz", tree)
    for number, path in enumerate(sorted(tree.rglob("*"))):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1_000_000 + number, 2_000_000 + number))
    cache = tree / "records" / "__pycache__"
    cache.mkdir()
    (cache / "x.cpython-311.pyc").write_bytes(b"compiled")
    code = (
        "import os, sys; os.umask(0o077); from pathlib import Path; from kit import zipapp; "
        f"print(zipapp.build(Path('two.pyz'), Path({str(tree)!r})))"
    )
    env = {**os.environ, "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Tokyo", "PYTHONPATH": str(ROOT)}
    env["PYTHONHASHSEED"] = "123"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == str(one)
    assert (tmp_path / "one.pyz").read_bytes() == (tmp_path / "two.pyz").read_bytes()


def test_any_changed_source_gives_another_digest(tmp_path: Path) -> None:
    tree = copied_tree(tmp_path / "tree")
    before = zipapp.build(tmp_path / "a.pyz", tree)
    with (tree / "remote" / "__init__.py").open("a") as file:
        file.write("#\n")
    assert zipapp.build(tmp_path / "a.pyz", tree) != before


def test_it_holds_sources_only_with_fixed_times_and_modes(tmp_path: Path) -> None:
    target = tmp_path / "harness.pyz"
    digest = zipapp.build(target, ROOT)
    assert digest == Digest.of(target.read_bytes())
    with zipfile.ZipFile(target) as archive:
        entries = archive.infolist()
    names = [e.filename for e in entries]
    assert names == ["__main__.py", *sorted(names[1:])]
    assert all(name.endswith(".py") for name in names)
    assert not any(name.startswith(("records/data/", "kit/", "analysis/")) for name in names)
    assert {e.date_time for e in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {(e.external_attr >> 16, e.compress_type) for e in entries} == {(0o100644, 0)}


def test_it_starts_isolated_and_without_site_packages(tmp_path: Path) -> None:
    target = tmp_path / "harness.pyz"
    zipapp.build(target, ROOT)
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(target)], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"usage: harness.pyz run JOB.json" in done.stderr


def test_a_damaged_archive_is_built_again_under_its_name(tmp_path: Path) -> None:
    path, digest = zipapp.build_named(tmp_path, ROOT)
    path.write_bytes(b"damaged")
    again, same = zipapp.build_named(tmp_path, ROOT)
    assert (again, same) == (path, digest)
    assert Digest.of(path.read_bytes()) == digest
