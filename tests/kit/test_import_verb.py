"""`kit import`: foreign files from the command line; nothing of them reaches the records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit.main import main
from records.errors import ForeignFileError

FILES = Path(__file__).parents[1] / "fixtures" / "foreign"


@pytest.mark.parametrize(
    "argv", [["vllm-bench", str(FILES / "vllm-bench.json")], ["aiperf", str(FILES / "aiperf")]]
)
def test_tables_and_json(argv, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KIT_DATA", str(tmp_path / "data"))
    assert main(["import", *argv, "--definitions"]) == 0
    text = capsys.readouterr().out
    assert "FOREIGN" in text
    assert "tpot.n-k1" in text
    assert main(["import", *argv, "--definitions", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["foreign"] is True
    assert [table["name"] for table in told["tables"]] == ["contents", "definitions"]
    assert not (tmp_path / "data").exists()


def test_a_file_of_another_form_ends_with_its_own_code(tmp_path, capsys):
    path = tmp_path / "x.json"
    assert main(["import", "vllm-bench", str(path)]) == 2
    path.write_text("{}")
    assert main(["import", "vllm-bench", str(path)]) == ForeignFileError.exit_code
    assert "--save-detailed" in capsys.readouterr().err


@pytest.mark.parametrize("tool", ["vllm-bench", "aiperf"])
@pytest.mark.parametrize("data", [b"", b"\xff\x00", b"[" * 100_000, b"{}", b"[]", b"null", b"1"])
def test_whatever_a_file_lacks_there_is_something_to_try(
    tool: str, data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(data)
    assert main(["import", tool, str(tmp_path / "file")]) == ForeignFileError.exit_code
    assert "  try: " in capsys.readouterr().err


def test_a_directory_is_no_saved_result(tmp_path: Path) -> None:
    assert main(["import", "vllm-bench", str(tmp_path)]) == 2
    assert main(["import", "vllm-bench", ""]) == 2
