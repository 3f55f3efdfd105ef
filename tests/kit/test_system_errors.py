"""Places that are full, forbidden or taken: a message and an exit code, never a traceback."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kit.home import Home
from kit.main import BUG, cli, main
from kit.system_errors import as_kit_error
from records.errors import DiskFullError, ForeignDirectoryError, HostUnfitError
from tests.sealed_run import make_run, small_plan

ROOT = Path(__file__).parents[2]
RUN = "20261130T100000Z-test-plan-0a1b2c"
FULL = Path("/dev/full")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("home", "data", "out"):
        monkeypatch.setenv(f"KIT_{name.upper()}", str(tmp_path / name))
    return tmp_path


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        cwd=ROOT,
        env={**os.environ, "KIT": f"{sys.executable} -m kit.main"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("code", "want"),
    [
        (errno.ENOSPC, DiskFullError),
        (errno.EDQUOT, DiskFullError),
        (errno.EACCES, HostUnfitError),
        (errno.EROFS, HostUnfitError),
        (errno.ENOTDIR, ForeignDirectoryError),
        (errno.EEXIST, ForeignDirectoryError),
        (errno.EISDIR, ForeignDirectoryError),
    ],
)
def test_a_refusal_names_the_path_and_a_way_out(code: int, want: type, tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path / "h", tmp_path / "d", tmp_path / "o")
    found = as_kit_error(OSError(code, os.strerror(code), "/some/place"), home)
    assert type(found) is want
    assert found is not None
    assert "/some/place" in found.message
    assert "KIT_HOME" in found.remedy


def test_what_nobody_can_help_stays_a_bug(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path, tmp_path, tmp_path)
    assert as_kit_error(FileNotFoundError(errno.ENOENT, "no", "x"), home) is None
    assert as_kit_error(OSError(errno.EACCES, "a socket, say"), home) is None


def test_of_a_long_path_the_file_in_the_way_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path, tmp_path, tmp_path)
    (tmp_path / "note").touch()
    with pytest.raises(NotADirectoryError) as caught:
        (tmp_path / "note" / "a" / "b").mkdir()
    found = as_kit_error(caught.value, home)
    assert found is not None
    assert found.message.startswith(f"{tmp_path / 'note'} is in the way")


def test_a_file_in_the_place_of_the_home_is_named(
    places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (places / "home").write_text("a note")
    assert main(["run", "--plan", "demo", "--detach"]) == ForeignDirectoryError.exit_code
    assert str(places / "home") in capsys.readouterr().err


def test_a_bug_whose_traceback_cannot_be_kept_is_still_told(
    places: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli, "main", broken)
    (places / "home").write_text("a note")
    with pytest.raises(SystemExit) as ended:
        main(["status"])
    assert ended.value.code == BUG
    shown = capsys.readouterr().err
    assert "ZeroDivisionError: a bug" in shown
    assert "KIT_HOME" in shown


def test_a_reader_that_has_gone_is_no_failure(places: Path) -> None:
    done = shell("$KIT plan show | true")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_full_disk_behind_the_output_is_told(places: Path) -> None:
    done = shell("$KIT plan show > /dev/full")
    assert done.returncode == DiskFullError.exit_code
    assert "no space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_records_that_cannot_be_placed_are_named(
    places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    carried = make_run(places / "carried" / RUN, small_plan()).path
    (places / "data").write_text("a note")
    assert main(["fetch-records", "--from", str(carried)]) == ForeignDirectoryError.exit_code
    assert str(places / "data") in capsys.readouterr().err
