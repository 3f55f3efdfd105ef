"""Exports cut off by a full disk or a kill: what stood there stays, nothing is half there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from files_below import files_below
from sealed_run import Shape, list_run, make_run, small_plan

from analysis.whole import whole_directory, whole_file
from kit.main import main
from records.errors import DiskFullError, ExportError

ROOT = Path(__file__).parents[2]
# A limit on the size of files ends a write in the middle: as a full disk does where its signal is
# ignored, and as a kill, which nothing can catch, where it is not.
_LIMITED = """
import resource, signal, sys
import analysis.exporting.crate_files, analysis.exporting.table_files, kit.commands.export
from kit.main import main
how, size, *argv = sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN if how == "full" else signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), int(size)))
sys.exit(main(argv))
"""
# Above what about.json takes, below what the last of the tables does.
_BYTES = 2000
_FORMS = ("csv", "parquet", "ro-crate")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("KIT_HOME", "KIT_DATA", "KIT_OUT"):
        monkeypatch.setenv(name, str(tmp_path / name.removeprefix("KIT_").lower()))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    for name in ("run-1", "run-2"):
        list_run(tmp_path / "data", make_run(tmp_path / "data" / name, small_plan(), Shape()))
    return tmp_path / "data"


def limited(how: str, *argv: str, limit_bytes: int = _BYTES) -> subprocess.CompletedProcess[str]:
    """The command line in a process whose files cannot grow past a limit."""
    return subprocess.run(
        [sys.executable, "-c", _LIMITED, how, str(limit_bytes), *argv],
        cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("form", _FORMS)
def test_a_full_disk_leaves_nothing_half_there(data: Path, tmp_path: Path, form: str) -> None:
    place = tmp_path / "exports"
    place.mkdir()
    done = limited("full", "export", form, "run-1", "--out", str(place / "x"))
    assert done.returncode == DiskFullError.exit_code, done.stderr
    assert str(place / "x") in done.stderr
    assert "--out" in done.stderr
    assert list(place.iterdir()) == []
    assert main(["export", form, "run-1", "--out", str(place / "x")]) == 0


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("how", ["full", "killed"])
def test_the_export_of_before_stays(data: Path, tmp_path: Path, form: str, how: str) -> None:
    out = tmp_path / "exports" / "x"
    assert main(["export", form, "run-1", "--out", str(out)]) == 0
    (out / "mine.txt").write_text("a note")
    before = files_below(out)
    done = limited(how, "export", form, "run-2", "--out", str(out))
    want = DiskFullError.exit_code if how == "full" else -signal.SIGXFSZ
    assert done.returncode == want, done.stderr
    found = files_below(out)
    assert {name: found.get(name) for name in before} == before
    if how == "full":
        assert found == before
    assert main(["export", form, "run-2", "--out", str(out)]) == 0
    after = files_below(out)
    assert after.keys() == before.keys()  # nothing of the one that was cut off is left
    assert b"run-2" in after["about.json"]
    assert after["mine.txt"] == b"a note"


@pytest.mark.parametrize("form", _FORMS)
def test_a_kill_leaves_no_name_and_the_next_one_cleans_up(
    data: Path, tmp_path: Path, form: str
) -> None:
    place = tmp_path / "exports"
    place.mkdir()
    done = limited("killed", "export", form, "run-1", "--out", str(place / "x"))
    assert done.returncode == -signal.SIGXFSZ, done.stderr
    assert not (place / "x").exists()
    assert main(["export", form, "run-1", "--out", str(place / "x")]) == 0
    assert [path.name for path in place.iterdir()] == ["x"]


@pytest.mark.parametrize("words", [("in-toto", "run-1"), ("zenodo",)])
def test_single_files_are_whole_or_as_before(
    data: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    out = tmp_path / "exports" / "x"
    assert main(["export", *words, "--out", str(out)]) == 0
    before = files_below(out.parent)
    done = limited("full", "export", *words, "--out", str(out), limit_bytes=500)
    assert done.returncode == DiskFullError.exit_code, done.stderr
    assert files_below(out.parent) == before


@pytest.mark.parametrize("part", [whole_directory, whole_file])
def test_ctrl_c_leaves_what_was_there(tmp_path: Path, part: Any) -> None:
    out = tmp_path / "x"
    words: tuple[Any, ...] = (out, ["a", "b"]) if part is whole_directory else (out,)
    with pytest.raises(KeyboardInterrupt), part(*words) as fresh:
        (fresh / "a" if fresh.is_dir() else fresh).write_bytes(b"begun")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_two_at_once_do_not_mix(tmp_path: Path) -> None:
    out = tmp_path / "x"
    with whole_directory(out, ["a"]) as one:
        (one / "a").write_bytes(b"first")
        with pytest.raises(ExportError, match="another command"), whole_directory(out, ["a"]):
            pytest.fail("the second one began")
    assert files_below(out) == {"a": b"first"}


def test_two_forms_share_a_directory_only_of_the_same_runs(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """about.json would else speak of other runs than the files beside it."""
    out = tmp_path / "x"
    assert main(["export", "csv", "run-1", "--out", str(out)]) == 0
    assert main(["export", "parquet", "run-1", "--out", str(out)]) == 0
    before = files_below(out)
    assert len(before) == 7
    assert main(["export", "parquet", "run-2", "--out", str(out)]) == ExportError.exit_code
    assert "windows.csv" in capsys.readouterr().err
    assert files_below(out) == before


def test_files_that_are_no_export_are_not_overwritten(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x"
    out.mkdir()
    (out / "requests.csv").write_text("my own")
    assert main(["export", "csv", "run-1", "--out", str(out)]) == ExportError.exit_code
    assert "requests.csv" in capsys.readouterr().err
    assert files_below(out) == {"requests.csv": b"my own"}


@pytest.mark.parametrize(
    "words",
    [
        ("export", "csv", "run-1", "--out"),
        ("export", "zenodo", "--out"),
        ("export", "ro-crate", "run-1", "--out"),
        ("export", "in-toto", "run-1", "--out"),
        ("report", "run-1", "--out"),
        ("plan", "power", "--cv", "3", "--plot"),
    ],
)
def test_a_place_that_cannot_be_is_named_before_anything_is_read(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note").write_text("mine")
    before = files_below(tmp_path)
    assert main([*words, str(tmp_path / "note" / "x.svg")]) == ExportError.exit_code
    told = capsys.readouterr().err
    assert f"{tmp_path / 'note'}: Not a directory" in told
    assert f"ls -ld {tmp_path / 'note'})" in told
    assert words[-1] in told
    # A directory with a name of 255 bytes can be made, but not one with a longer name beside it.
    for size in (252, 300):
        assert main([*words, str(tmp_path / ("x" * (size - 4) + ".svg"))]) == ExportError.exit_code
        assert "File name too long" in capsys.readouterr().err
    # What a shell makes of a variable without a value.
    assert main([*words, ""]) == 2
    assert "an empty name" in capsys.readouterr().err
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("link", [False, True])
def test_the_working_directory_and_links_are_places_too(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: bool
) -> None:
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    (tmp_path / "link").symlink_to("x")
    name = str(tmp_path / "link") if link else "."
    assert main(["export", "csv", "run-1", "--out", name]) == 0
    assert main(["export", "in-toto", "run-1", "--out", f"{name}/s.json"]) == 0
    assert set(files_below(tmp_path / "x")) == {
        "about.json", "chunks.csv", "requests.csv", "s.json", "windows.csv"
    }  # fmt: skip
    assert (tmp_path / "link").is_symlink()
