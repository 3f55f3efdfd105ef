"""Tables for people: nothing is lost, and the last column wraps where the terminal ends."""

from __future__ import annotations

import json
from pathlib import Path
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.main import main
from kit.output import json_text, plain, table_lines
from tests.sealed_run import Shape, make_run, small_plan

ROOT = Path(__file__).parents[2]
HEAD = ("plan", "boots", "title")
STEERS = ("Cc", "Cf", "Cs", "Zl", "Zp")
ROWS = (("demo", 4, "Demonstration against the reference server"), ("other", 12, ""))


def test_a_file_gets_every_row_in_one_line() -> None:
    lines = list(table_lines(HEAD, ROWS))
    assert len(lines) == 2 + len(ROWS)
    assert lines[2].endswith("reference server")


def test_on_a_terminal_the_last_column_goes_on_below() -> None:
    lines = list(table_lines(HEAD, ROWS, 40))
    assert max(map(len, lines)) <= 40
    assert lines[3].startswith(" " * 14)
    assert " ".join(" ".join(lines[2:4]).split()) == f"demo 4 {ROWS[0][2]}"


@given(st.integers(0, 200), st.lists(st.text("ab ", max_size=60), min_size=1, max_size=4))
def test_no_word_is_lost_at_any_width(width: int, cells: list[str]) -> None:
    lines = table_lines(("a", "b"), [("x", cell) for cell in cells], width)
    told = "".join("".join(lines).split())
    assert told.count("a") + told.count("b") == 2 + sum(
        cell.count("a") + cell.count("b") for cell in cells
    )


def test_a_run_of_the_demo_is_told_by_its_directory(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("home", "data", "out"):
        monkeypatch.setenv(f"KIT_{name.upper()}", str(tmp_path / name))
    run = make_run(tmp_path / "out" / "demo" / "records" / "run-1", small_plan(), Shape())
    assert main(["minutes", "run-1"]) == 13
    assert f"by its directory: {run.path}" in capsys.readouterr().err


@pytest.mark.parametrize(("sealed", "mark"), [(True, ""), (False, " (unfinished)")])
def test_the_minutes_of_an_unfinished_run_say_so(
    sealed: bool, mark: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run-1", small_plan(), Shape(seal=sealed))
    assert main(["minutes", str(run.path)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"run-1{mark}"


@given(st.text())
def test_no_text_steers_a_terminal_and_its_lines_stay(text: str) -> None:
    shown = plain(text)
    assert not any(category(c) in STEERS for c in shown if c not in "\n\t")
    assert (shown.count("\n"), shown.count("\t")) == (text.count("\n"), text.count("\t"))


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner), max_leaves=8))
def test_json_says_the_same_and_steers_no_terminal(value: object) -> None:
    text = json_text({"value": value})
    assert json.loads(text) == {"value": value}
    assert not any(category(c) in STEERS for c in text if c != "\n")


def test_what_turns_the_order_over_is_an_escape_in_json() -> None:
    assert json_text("a\u202eb\x9b\U000e0001é") == '"a\\u202eb\\u009b\\udb40\\udc01é"'


def test_every_verb_prints_by_what_lets_nothing_steer() -> None:
    paths = [path for path in (ROOT / "kit").rglob("*.py") if path.name != "output.py"]
    assert [path.name for path in paths if "click.echo" in path.read_text()] == []
