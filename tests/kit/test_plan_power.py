"""`kit plan power` as a user types it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from kit.main import main
from tests.sealed_run import Shape, make_run, small_plan

RUN = "20261130T100000Z-test-plan-0a1b2c"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A sealed run of four boots an arm, which differ a little in speed."""
    return make_run(tmp_path / "data" / RUN, small_plan(blocks=4), Shape(synthetic=True)).path


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main(["plan", "power", *argv, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def rows(found: dict[str, Any], table: str) -> list[dict[str, Any]]:
    return next(t["rows"] for t in found["tables"] if t["name"] == table)


def test_published_spreads_and_a_plans_own_boots(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "l4-confounds")
    assert found["design"]["boots"] == 12
    cvs = {row["arm"]: row for row in rows(found, "cv")}
    graph = cvs["draft-bf16-graph c64"]
    assert (graph["cv_percent"], graph["boots"]) == (13.92, 12)
    assert graph["95_percent_low_percent"] < 13.92 < graph["95_percent_high_percent"]
    known = {row["arm"]: row for row in rows(found, "sources")}
    assert known["draft-bf16-graph c64"]["over_boots"] == 12
    assert (
        "CUDA graphs, draft model (dispersion.graph.cv)"
        in (known["draft-bf16-graph c64"]["known_from"])
    )
    assert known["draft-bf16-graph c64, acceptance length"]["over_boots"] is None
    pairs = {(row["arm"], row["over"]) for row in rows(found, "ratio")}
    assert ("draft-bf16-graph c64", "draft-bf16-eager c64") in pairs
    # no ratio of unlike quantities
    assert ("draft-bf16-graph c64", "draft-bf16-graph c64, acceptance length") not in pairs
    assert [row["test"] for row in rows(found, "spread")] == ["F", "Brown-Forsythe"]
    assert "hosts" not in {table["name"] for table in found["tables"]}


def test_in_words_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "power", "l4-confounds", "--hosts", "3", "--detect", "3"]) == 0
    shown = capsys.readouterr().out
    # Hosts share the plan's twelve blocks.
    for words in ("4 boots of an arm on each of 3 hosts", "boots to find 3 %", "over hosts"):
        assert words in shown
    assert main(["plan", "power", "smoke-cpu"]) == 0
    shown = capsys.readouterr().out
    assert "One host tells nothing of how much hosts differ" in shown
    assert "figures stand for them" in shown


def test_a_newcomer_finds_the_plans_own_arms_and_what_stands_for_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rows are arms of the plan; a claim's id stands only beside the words of what it is."""
    assert main(["plan", "power", "smoke-cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert not [line for line in lines if line.startswith(("dispersion.", "acceptance."))]
    (told,) = [line for line in lines if "(dispersion.ngram.cv)" in line]
    assert told.startswith("ngram c8 ")
    assert "n-gram speculation at the same n" in told
    # A plan that the study measured no arm of says so.
    assert main(["plan", "power", "demo"]) == 0
    assert "measured none of this plan's arms" in capsys.readouterr().out


def test_each_arm_has_the_boots_that_the_plan_gives_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Arms may name their blocks: of sm90-confounds n-gram has three boots, the draft 20."""
    found = told(capsys, "sm90-confounds")
    assert {row["arm"]: row["boots"] for row in rows(found, "cv")} == {
        "draft c64": 20, "draft-eager c64": 14, "ngram c64": 3, "draft c64, acceptance length": 20
    }  # fmt: skip
    shared = {(row["arm"], row["over"]): row["boots"] for row in rows(found, "ratio")}
    assert shared["draft c64", "ngram c64"] == 3
    assert shared["draft c64", "draft-eager c64"] == 14
    # Two arms' spreads are of the boots that both have: the second most, not the plan's blocks.
    (notes,) = [table["notes"] for table in found["tables"] if table["name"] == "spread"]
    assert any("with 14 boots of an arm" in note for note in notes)
    asked = told(capsys, "sm90-confounds", "--boots", "24")
    assert {row["boots"] for row in rows(asked, "cv")} == {24}
    few = next(row for row in rows(found, "cv") if row["arm"] == "ngram c64")
    many = next(row for row in rows(asked, "cv") if row["arm"] == "ngram c64")
    assert many["95_percent_high_percent"] < few["95_percent_high_percent"]
    assert many["boots_to_repeat"] == few["boots_to_repeat"]


def test_arms_without_a_block_in_common_are_not_said_to_be_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Eager boots and n-gram boots of sm90-confounds stand in other blocks, an hour apart."""
    found = told(capsys, "sm90-confounds")
    (pair,) = [
        row for row in rows(found, "ratio")
        if (row["arm"], row["over"]) == ("draft-eager c64", "ngram c64")
    ]  # fmt: skip
    assert pair["boots"] == 0
    assert pair["finds_percent"] is None
    assert pair["standard_error_percent"] is None
    assert pair["boots_to_find_5_percent"] == 6  # what boots in common blocks would do
    (table,) = [t for t in found["tables"] if t["name"] == "ratio"]
    assert "nothing is found: draft-eager c64 and ngram c64." in table["notes"][-1]
    of_arms = {source["arm"]: set(source["blocks"]) for source in found["sources"]}
    assert not of_arms["draft-eager"] & of_arms["ngram"]


def test_spreads_given_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    few = told(capsys, "--boots", "6", "--cv", "13.92", "--cv", "1.44")
    many = told(capsys, "--boots", "24", "--cv", "13.92", "--cv", "1.44")
    assert [source["name"] for source in few["sources"]] == ["CV 13.92 %", "CV 1.44 %"]
    assert len(rows(few, "ratio")) == 3
    for less, more in zip(rows(few, "ratio"), rows(many, "ratio"), strict=True):
        assert more["finds_percent"] < less["finds_percent"]
        assert more["boots_to_find_5_percent"] == less["boots_to_find_5_percent"]


def test_spreads_of_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "--from", str(run), "--window", "c1")
    assert {source["name"] for source in found["sources"]} == {"draft c1", "none c1"}
    assert {source["boots"] for source in found["sources"]} == {4}
    everything = told(capsys, "--from", str(run))
    assert len(everything["sources"]) == 4
    assert len(rows(everything, "ratio")) == 6  # never one window over another
    assert (everything["plan"], everything["design"]["boots"]) == ("test-plan", 4)
    # The made-up boots are slower from block to block, all arms alike: blocks gain.
    blocks = rows(everything, "blocks")
    assert {(row["arm"], row["over"]) for row in blocks} == {
        ("draft c1", "none c1"), ("draft c2", "none c2")
    }  # fmt: skip
    assert all(row["blocks"] == 4 and row["gain"] > 1 for row in blocks)


def test_hosts_that_differ_are_what_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "--hosts", "3", "--host-cv", "2", "--cv", "1", "--boots", "12")
    (row,) = rows(found, "ratio")
    assert row["hosts_to_find_5_percent"] > 3
    assert rows(found, "hosts")[0]["95_percent_high"] > 6


@pytest.mark.parametrize(
    ("name", "begins"), [("p.svg", b"<?xml"), ("p.pdf", b"%PDF"), ("p.png", b"\x89PNG")]
)
def test_a_plot_with_its_data_beside_it(
    name: str, begins: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(capsys, "l4-confounds", "--plot", str(tmp_path / name))
    assert (tmp_path / name).read_bytes().startswith(begins)
    assert found["files"] == [str(tmp_path / name), str(tmp_path / "p.csv")]
    with (tmp_path / "p.csv").open(newline="") as data:
        drawn = list(csv.DictReader(data))
    assert {row["panel"] for row in drawn} == {
        "CV interval", "ratio of two arms", "ratio of spreads"
    }  # fmt: skip
    assert {row["plan"] for row in drawn} == {"12"}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--cv", "0"), "0"),
        (("--cv", "1", "--from", "x"), "not both"),
        (("--window", "c1"), "--from RUN"),
        (("--host-cv", "1"), "--hosts 2"),
        (("--plot", "p.gif"), ".svg"),
        (("--detect", "100"), "percent"),
        (("--boots", "1"), "2<=x"),
    ],
)
def test_what_cannot_be_asked(
    argv: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "power", *argv]) == 2
    assert words in capsys.readouterr().err


def test_a_run_of_too_few_boots_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = make_run(tmp_path / "data" / RUN, small_plan(blocks=2), Shape()).path
    assert main(["plan", "power", "--from", str(few)]) == 2
    assert "no arm with three usable boots" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("--cv", "nan"),
        ("--cv", "1e-300"),
        ("--cv", "5", "--correlation", "nan"),
        ("--cv", "5", "--hosts", "2", "--host-cv", "nan"),
        ("--detect", "nan"),
    ],
)
def test_no_number_is_no_spread(words: tuple[str, ...]) -> None:
    assert main(["plan", "power", *words]) == 2


def test_the_least_spread_that_may_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "--cv", "0.0001", "--hosts", "2", "--host-cv", "1e-9")
    assert "NaN" not in json.dumps(found)


@pytest.mark.parametrize("alpha", ["0.0001", "0.01"])
def test_a_difference_beyond_every_number_is_none(
    alpha: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "power", "demo", "--boots", "2", "--cv", "50", "--alpha", alpha]) == 0
    assert "boots of an arm" in capsys.readouterr().out


@pytest.mark.parametrize("power", ["1", "5"])
def test_a_power_that_chance_has_too_is_a_wrong_command_line(
    power: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "power", "demo", "--power", power]) == 2
    assert "--power above --alpha" in capsys.readouterr().err


def test_a_power_just_above_the_level_has_an_answer() -> None:
    assert main(["plan", "power", "demo", "--power", "6"]) == 0


@pytest.mark.parametrize("alpha", ["1e-300", "0.0000001", "50", "99.9"])
def test_a_level_that_no_test_has_is_a_wrong_command_line(alpha: str) -> None:
    assert main(["plan", "power", "demo", "--alpha", alpha]) == 2
