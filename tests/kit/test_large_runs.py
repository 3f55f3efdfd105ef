"""`kit analyze` and `kit compare-definitions` over runs that count as large."""

from __future__ import annotations

from pathlib import Path

import pytest
from sealed_run import Shape, list_run, make_run, small_plan

from analysis.streaming import large_run, parquet_cache
from kit.main import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one sealed run."""
    for name, folder in (("KIT_HOME", "home"), ("KIT_DATA", "data"), ("KIT_OUT", "out")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    (tmp_path / "data").mkdir()
    list_run(tmp_path / "data", make_run(tmp_path / "data" / "run-1", small_plan(), Shape()))
    return tmp_path


def test_the_same_by_way_of_the_cache(home, monkeypatch, capsys):
    def said() -> tuple[str, dict[str, bytes]]:
        assert main(["analyze"]) == 0
        assert main(["compare-definitions"]) == 0
        tables = home / "out" / "tables"
        files = {str(p.relative_to(tables)): p.read_bytes() for p in tables.rglob("*.*")}
        return capsys.readouterr().out, files

    want = said()
    assert not (home / "home" / "cache").exists()
    monkeypatch.setattr(large_run, "LARGE_BYTES", 0)
    monkeypatch.setattr(parquet_cache, "BATCH_CHUNKS", 20)
    assert said() == want
    assert len(list((home / "home" / "cache").iterdir())) == 1
    assert said() == want
