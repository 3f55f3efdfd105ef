"""`kit export`: every form from the command line, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sealed_run import Shape, list_run, make_run, small_plan

import kit.commands.export
from audit.leaks import leaks
from kit.home import Home
from kit.main import main
from records.errors import ExportError, HostUnfitError

# Root may look into anything, but for what makes it do so.
_BOUND = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
REAL = "20261130T115921Z-smoke-cpu-5d0eba"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, folder in (("KIT_HOME", "home"), ("KIT_DATA", "data"), ("KIT_OUT", "out")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    data = tmp_path / "data"
    data.mkdir()
    list_run(data, make_run(data / "run-1", small_plan(blocks=1), Shape()))
    make_run(data / "run-open", small_plan(blocks=1), Shape(seal=False))
    return data


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_tables(data, tmp_path, capsys, form):
    assert main(["export", form, "run-1", "--out", str(tmp_path / "x"), "--json"]) == 0
    files = [Path(name) for name in json.loads(capsys.readouterr().out)["files"]]
    assert [path.name for path in files] == [
        f"windows.{form}", f"requests.{form}", f"chunks.{form}", "about.json",
    ]  # fmt: skip
    assert all(path.stat().st_size for path in files)


def test_a_statement_of_what_the_audit_finds(data, capsys):
    assert main(["export", "in-toto", "run-1"]) == 0
    predicate = json.loads(capsys.readouterr().out)["predicate"]
    assert "chain" in predicate["passedTests"]
    log = next((data / "run-1" / "logs").iterdir())
    log.write_bytes(b"changed")
    assert main(["export", "in-toto", "run-1"]) == 0
    predicate = json.loads(capsys.readouterr().out)["predicate"]
    assert predicate["result"] == "FAILED"
    assert "seal" in predicate["failedTests"]
    assert "chain" in predicate["passedTests"]


def test_zenodo_takes_every_sealed_run(data, tmp_path):
    assert main(["export", "zenodo", "--out", str(tmp_path / "z")]) == 0
    told = (tmp_path / "z" / "zenodo-data.json").read_text()
    assert "run-1" in told
    assert "run-open" not in told


@pytest.mark.parametrize("argv", [["ro-crate", "run-open", "--out", "x"], ["in-toto", "run-open"]])
def test_an_open_run_is_refused(data, tmp_path, monkeypatch, capsys, argv):
    monkeypatch.chdir(tmp_path)
    assert main(["export", *argv]) == ExportError.exit_code
    assert "not sealed" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["parquet", "csv", "ro-crate", "zenodo"])
def test_nothing_is_written_among_the_records(data, capsys, form):
    names = [] if form == "zenodo" else ["run-1"]
    out = data / "run-1" / "export"
    assert main(["export", form, *names, "--out", str(out)]) == ExportError.exit_code
    assert not out.exists()


def test_nothing_leaks_that_the_audit_would_find(tmp_path, monkeypatch):
    """The measured run in every text form, looked through as the audit looks through records."""
    monkeypatch.setenv("KIT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for form, out in (("csv", "x"), ("ro-crate", "y"), ("in-toto", "z.json"), ("zenodo", "z")):
        assert main(["export", form, REAL, "--out", out]) == 0
    texts = [p for p in tmp_path.rglob("*") if p.suffix in (".csv", ".json")]
    assert len(texts) > 7
    for path in texts:
        assert [leak.shown for leak in leaks(path.read_bytes())] == [], path


def test_a_name_that_is_empty_or_too_long_names_no_run(data, tmp_path, capsys):
    """An empty one is what a shell makes of a variable without a value, not the newest run."""
    assert main(["export", "csv", "", "--out", str(tmp_path / "x")]) == 2
    assert main(["export", "csv", "r" * 300, "--out", str(tmp_path / "x")]) == 20
    told = capsys.readouterr().err
    assert "an empty name" in told
    assert "File name too long\n  try: name it shorter" in told
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_citation_that_is_not_there_or_no_text(data, tmp_path, monkeypatch, capsys, content):
    monkeypatch.setattr(
        kit.commands.export, "home", lambda: Home(tmp_path, tmp_path / "h", data, tmp_path / "o")
    )
    if content is not None:
        (tmp_path / "CITATION.cff").write_bytes(content)
    assert main(["export", "zenodo", "--out", str(tmp_path / "z")]) == ExportError.exit_code
    assert f"{tmp_path / 'CITATION.cff'} is not" in capsys.readouterr().err
    assert not (tmp_path / "z").exists()


def test_of_an_open_run_it_is_said_that_it_may_grow(data, tmp_path, capsys):
    assert main(["export", "csv", "run-open", "--out", str(tmp_path / "x")]) == 0
    assert "warning: run run-open is not sealed" in capsys.readouterr().err
    assert json.loads((tmp_path / "x" / "about.json").read_text())["runs"][0]["seal"] is None
    assert main(["export", "csv", "run-1", "--out", str(tmp_path / "x")]) == 0
    assert "warning" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [("export", "zenodo", "--out", "z"), ("report", "--out", "r")])
def test_a_run_that_cannot_be_looked_into_is_not_left_out_in_silence(data, tmp_path, words):
    """In a process that, as any but root's, is held to the rights of files."""
    (data / "run-1").chmod(0)
    argv = [*_BOUND, sys.executable, "-m", "kit.main", *words[:-1], str(tmp_path / words[-1])]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    (data / "run-1").chmod(0o755)
    assert done.returncode == HostUnfitError.exit_code, done.stderr
    assert f"{data / 'run-1' / 'seal.json'}: Permission denied" in done.stderr
    assert not (tmp_path / words[-1]).exists()


@pytest.mark.parametrize("name", ["\udcff", "a\x1b[2Jb", "a\nb"])
def test_an_agents_name_is_one_line_of_text(name: str, tmp_path: Path) -> None:
    out = str(tmp_path / "crate")
    assert main(["export", "ro-crate", "x", "--out", out, "--agent", name]) == 2
    assert main(["export", "ro-crate", "x", "--out", out, "--agent", "a", "--agent-url", name]) == 2
