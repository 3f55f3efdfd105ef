"""The boots that would decide are those that `kit plan power --from` reckons from the same run."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from analysis.claiming.claim import evaluate
from analysis.claiming.needed import boots_to_tell
from analysis.claiming.reading import Reading, read_study_run
from analysis.claims import claims_of
from kit.main import main
from records.errors import ClaimError
from records.run_directory import RunDirectory

DATA = Path("records/data")
MANY = DATA / "20261130T203408Z-sm90-confounds-7a6eeb"
ONE = DATA / "20261130T172404Z-sm90-confounds-aee89a"


def value(run: Path, name: str) -> object:
    read = read_study_run(RunDirectory(run))
    (claim,) = [c for c in claims_of("s", read.started.plan) if c.id == f"s.{name}"]
    return evaluate(claim, Reading("s", (read,))).value


def test_they_are_those_of_the_power_tables(capsys):
    asked = ["--window", "c64", "--detect", "10", "--json"]
    assert main(["plan", "power", "--from", MANY.name, *asked]) == 0
    told = json.loads(capsys.readouterr().out)["tables"]
    tables = {table["name"]: table["rows"] for table in told}
    for arm in ("draft", "draft-eager"):
        (cv,) = [row for row in tables["cv"] if row["arm"] == f"{arm} c64"]
        pairs = {(row["arm"], row["over"]): row for row in tables["ratio"]}
        like = pairs[f"{arm} c64", "one like it"]
        assert value(MANY, f"{arm}.c64.throughput.boots-to-repeat") == int(cv["boots_to_repeat"])
        assert value(MANY, f"{arm}.c64.throughput.boots-to-find-10") == int(
            like["boots_to_find_10_percent"]
        )


def test_one_boot_tells_nothing_of_how_many_are_needed():
    with pytest.raises(ClaimError, match="one boot has no spread"):
        value(ONE, "draft.c64.throughput.boots-to-find-10")


@pytest.mark.parametrize(("effect", "boots"), [(0.2, 199), (0.5, 34), (1.0, 10)])
def test_boots_that_tell_a_mean_from_nothing(effect, boots):
    """A paired t test at 5 %, two-sided, power 80 %: as G*Power 3.1 has it for these effects."""
    half = math.sqrt(0.5)  # two values so far apart have a standard deviation of one
    assert boots_to_tell([effect - half, effect + half]) == boots
    assert boots_to_tell([-effect - half, -effect + half]) == boots


def test_differences_that_never_vary_are_told_by_two_boots():
    assert boots_to_tell([1.5, 1.5, 1.5]) == 2


@pytest.mark.parametrize("differences", [[1.0], [0.0, 0.0], [-1.0, 1.0]])
def test_differences_that_tell_no_number(differences):
    with pytest.raises(ClaimError):
        boots_to_tell(differences)
