"""`kit compare` as a user calls it: what it reads, prints, writes and exits with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kit.main import main
from records.errors import (
    ContradictedError,
    ForeignDirectoryError,
    InconclusiveError,
    NotComparableError,
    UnknownRunError,
)
from tests.comparable_runs import Made, l4_plan, made_run
from tests.sealed_run import Shape

ROOT = Path(__file__).parents[2]
SHIPPED = "20261130T115921Z-smoke-cpu-5d0eba"
ARMS = ("draft-bf16-graph", "none-bf16-graph")
RATE = ("--only", "draft-bf16-graph.c64.throughput")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of a kit of one's own: run-1, the same again, one slower, one of another driver."""
    data = tmp_path_factory.mktemp("records") / "data"
    for name, made in (
        ("run-1", Made(lengths=lambda boot: 2 + 0.001 * boot.block)),
        ("run-2", Made(lengths=lambda boot: 2 + 0.001 * boot.block)),
        ("run-3", Made(lengths=lambda boot: 3 + 0.001 * boot.block)),
        ("run-4", Made(driver="570.9")),
    ):
        made_run(data / name, l4_plan(3, ARMS), made)
    return data


@pytest.fixture
def data(records: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same as the records of the command that is called."""
    monkeypatch.setenv("KIT_DATA", str(records))
    return records


def verdicts(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    assert main(["compare", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["verdicts"]
    return {one["id"]: one["outcome"] for one in found}


def test_the_published_study_by_the_shipped_records(capsys: pytest.CaptureFixture[str]) -> None:
    found = verdicts(capsys)
    assert len(found) >= 8
    assert not {"reproduced", "contradicted"} & set(found.values())
    assert main(["compare", SHIPPED]) == 0
    shown = capsys.readouterr().out
    assert "make reproduce PLAN=l4-confounds" in shown
    assert max(map(len, shown.splitlines())) <= 110


def test_with_another_run(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (same,) = verdicts(capsys, "run-1", "--with", "run-2", *RATE).values()
    (slower,) = verdicts(capsys, "run-1", "--with", str(data / "run-3"), *RATE).values()
    (other,) = verdicts(capsys, "run-1", "--with", "run-4", *RATE).values()
    assert (same, slower, other) == ("reproduced", "contradicted", "not applicable")
    # The newest by name, where none is named.
    assert verdicts(capsys, "--with", "run-1", *RATE) == verdicts(
        capsys, "run-4", "--with", "run-1", *RATE
    )


def test_intervals_are_shown_with_their_level(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "run-1", "--with", "run-2", *RATE]) == 0
    assert "90 % interval" in capsys.readouterr().out


def test_a_directory_without_the_run_itself(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "run-1", "--with", str(data), *RATE, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["verdicts"]
    assert found["runs"] == ["run-1", "run-2", "run-3"]
    project = tmp_path / "theirs"
    shutil.copytree(data / "run-2", project / "records" / "data" / "run-2")
    assert list(verdicts(capsys, "run-1", "--with", str(project), *RATE).values()) == ["reproduced"]


@pytest.mark.parametrize(
    ("baseline", "words", "code"),
    [
        ("run-2", (), 0),
        ("run-3", (), ContradictedError.exit_code),
        ("run-3", ("--fail-on", "inconclusive"), 0),
        ("run-4", (), NotComparableError.exit_code),  # a wrong baseline is not a green one
        ("run-4", ("--fail-on", "not-applicable"), NotComparableError.exit_code),
        (
            "run-2",
            ("--margin", "0.00001", "--fail-on", "inconclusive"),
            InconclusiveError.exit_code,
        ),
        ("run-3", ("--margin", "throughput=0.9"), 0),
    ],
)
def test_a_baseline_in_ci(
    data: Path, baseline: str, words: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "run-1", "--baseline", baseline, *RATE, *words]) == code
    assert "draft-bf16-graph.c64.throughput" in capsys.readouterr().out


def test_the_gravest_outcome_is_the_exit_code(data: Path) -> None:
    words = ["--fail-on", "not-applicable,inconclusive,contradicted"]
    assert main(["compare", "run-1", "--with", "run-3", *words]) == ContradictedError.exit_code


def test_markdown_holds_every_verdict(data: Path, tmp_path: Path) -> None:
    document = tmp_path / "out" / "verdicts.md"
    assert main(["compare", "run-1", "--with", "run-2", "--markdown", str(document)]) == 0
    first = document.read_bytes()
    assert first.count(b"| l4-confounds.") == 10 + 9
    assert b"inconclusive, 0 not applicable." in first
    assert main(["compare", "run-1", "--with", "run-2", "--markdown", str(document)]) == 0
    assert document.read_bytes() == first


def test_what_cannot_be_compared_at_all(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "run-1", "--with", "run-1"]) == UnknownRunError.exit_code
    assert "not held against itself" in capsys.readouterr().err
    made_run(tmp_path / "run-5", l4_plan(1, ARMS), Made(shape=Shape(seal=False)))
    assert (
        main(["compare", str(tmp_path / "run-5"), "--with", "run-1"]) == UnknownRunError.exit_code
    )
    assert "not sealed" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert (
        main(["compare", "run-1", "--with", str(tmp_path / "empty")]) == UnknownRunError.exit_code
    )
    forged = tmp_path / "forged" / "run-1"
    made_run(forged, l4_plan(3, ARMS), Made(lengths=lambda boot: 1.0 + boot.block))
    assert main(["compare", "run-1", "--with", str(forged)]) == ForeignDirectoryError.exit_code


@pytest.mark.parametrize(
    "words",
    [
        ("--margin", "0.05"),
        ("--with", "run-2", "--margin", "five"),
        ("--with", "run-2", "--margin", "1.5"),
        ("--with", "run-2", "--fail-on", "everything"),
        ("--threshold", "20"),
    ],
)
def test_a_wrong_command_line(data: Path, words: tuple[str, ...]) -> None:
    assert main(["compare", "run-1", *words]) == 2


def test_one_claim_on_several_sets_of_records_is_told_apart(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "run-1", "run-4", "--only", "dispersion.graph.cv"]) == 0
    shown = capsys.readouterr().out
    assert "dispersion.graph.cv [A]" in shown
    assert "[A] NVIDIA L4, driver 570.9, vllm 0.29.0: run-4" in shown
    assert "[B] NVIDIA L4, driver 580.1, vllm 0.29.0: run-1" in shown
    assert main(["compare", "run-1", "--only", "dispersion.graph.cv"]) == 0
    assert "[A]" not in capsys.readouterr().out


def test_synthetic_runs_are_called_so(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Made(shape=Shape(synthetic=True))
    one, two = (tmp_path / name for name in ("demo-1", "demo-2"))
    for path in (one, two):
        made_run(path, l4_plan(2, ARMS), made)
    assert main(["compare", str(one), "--with", str(two), *RATE]) == 0
    assert "demo-1 against demo-2 (SYNTHETIC)" in capsys.readouterr().out
    assert set(verdicts(capsys, str(one)).values()) <= {"not applicable", "inconclusive"}
