"""What a user names on make's command line reaches the kit as it is, whatever stands in it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parents[2] / "Makefile"
STUB = f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"
EVIL = ("'; touch bad; '", '"; touch bad; "', "`touch bad`", "$(shell touch bad)", "$$(touch bad)")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")


def told(directory: Path, *words: str) -> list[str]:
    """The arguments with which make calls the kit."""
    shutil.copy(MAKEFILE, directory)
    (directory / "pyproject.toml").touch()
    stub = directory / ".venv" / "bin" / "kit"
    stub.parent.mkdir(parents=True)
    stub.write_text(STUB)
    stub.chmod(0o755)
    (stub.parent / "python").touch()
    (directory / ".venv" / ".ready").touch()
    done = subprocess.run(
        ["make", "--no-print-directory", *words],
        cwd=directory,
        capture_output=True,
        text=True,
        check=True,
    )
    argv: list[str] = json.loads(done.stdout)
    return argv


@pytest.mark.parametrize("evil", EVIL)
def test_no_name_becomes_a_command(evil: str, tmp_path: Path) -> None:
    argv = told(tmp_path, "reproduce", f"HOST={evil}", f"PLAN={evil}", f"MIRROR={evil}")
    assert argv == ["reproduce", "--plan", evil, "--host", evil, "--mirror", evil]
    assert not (tmp_path / "bad").exists()


def test_what_is_not_named_takes_its_default(tmp_path: Path) -> None:
    assert told(tmp_path, "reproduce") == ["reproduce", "--plan", "smoke-cpu", "--host", ""]


def test_the_demo_goes_to_the_host_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert told(tmp_path / "a", "demo") == ["reproduce", "--plan", "demo"]
    argv = told(tmp_path / "b", "demo", "HOST=u@h:22")
    assert argv == ["reproduce", "--plan", "demo", "--host", "u@h:22"]


def test_verify_images_names_host_and_mirror_only_where_they_are_given(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert told(tmp_path / "a", "verify-images") == ["images", "verify"]
    argv = told(tmp_path / "b", "verify-images", "HOST=u@h:22", "MIRROR=http://m")
    assert argv == ["images", "verify", "--mirror", "http://m", "u@h:22"]
