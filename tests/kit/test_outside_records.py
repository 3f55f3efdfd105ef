"""Files that a user names: none of them is written among the records."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest

from kit.main import main
from records.errors import ExportError
from tests.sealed_run import Shape, list_run, make_run, small_plan

RUNS = ("run-1", "run-2")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records of two runs, the only ones of the command that is called."""
    place = tmp_path / "data"
    for name in RUNS:
        list_run(place, make_run(place / name, small_plan(blocks=3, requests=2), Shape()))
    for name in ("KIT_DATA", "KIT_HOME", "KIT_OUT"):
        monkeypatch.setenv(name, str(tmp_path / name.removeprefix("KIT_").lower()))
    return place


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "run-1", "--with", "run-2", "--markdown"),
        ("report", "run-1", "--out"),
        ("plan", "power", "--from", "run-1", "--plot"),
        ("export", "in-toto", "run-1", "--out"),
    ],
)
@pytest.mark.parametrize("name", ["x.svg", "run-1/x.svg", "../data/x.svg"])
def test_no_verb_writes_there(data: Path, words: tuple[str, ...], name: str) -> None:
    before = sorted(data.rglob("*"))
    assert main([*words, str(data / name)]) == ExportError.exit_code
    assert sorted(data.rglob("*")) == before


def test_a_full_disk_leaves_what_was_there_and_nothing_cut_off(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A limit on the size of files stands for the full disk: both end a write in the middle."""
    page, crate = tmp_path / "page.html", tmp_path / "crate.zip"
    page.write_text("the page of before")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
        codes = [
            main(["report", "run-1", "--out", str(page)]),
            main(["export", "ro-crate", "run-1", "--out", str(crate)]),
        ]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert 0 not in codes
    assert page.read_text() == "the page of before"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["page.html"]
    assert main(["export", "ro-crate", "run-1", "--out", str(crate)]) == 0
    assert "written" in capsys.readouterr().err
