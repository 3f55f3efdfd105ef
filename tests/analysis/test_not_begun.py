"""What was planned and not begun is said once, with the reason, and has no row of zeros."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.claiming.reading import read_study_run
from analysis.conduct_tables import boots_table
from analysis.not_begun import GONE, LEFT_OUT, named, not_begun, tells
from analysis.publish import studies
from analysis.reading import read_run
from analysis.study_tables import study_of_runs
from analysis.table import as_object
from kit.commands.study_text import WIDTH, study_summary
from records.plan import boot_order
from records.run_directory import RunDirectory
from records.schema import RunEnded
from tests.closed_run import cut_short
from tests.sealed_run import Shape, make_run, small_plan

DATA = Path(__file__).parents[2] / "records" / "data"
# One plan on two hosts: the first was closed in its second block, the second left two blocks out.
CLOSED = DATA / "20261130T170838Z-sm90-confounds-70604b"
LEFT = DATA / "20261130T172404Z-sm90-confounds-aee89a"


@pytest.mark.parametrize(
    ("path", "rows", "told"),
    [
        (
            CLOSED,
            ["draft", "draft-eager", "none", "ngram"],
            f"13 of 18 planned boots (draft of block 2; blocks 3 to 5 and 12, whole): {GONE}.",
        ),
        (
            LEFT,
            ["draft", "draft-eager"],
            f"4 of 6 planned boots (blocks 4 and 12, whole): {LEFT_OUT}.",
        ),
    ],
    ids=["closed", "left out"],
)
def test_arms_without_a_boot_have_no_row_and_are_named(
    path: Path, rows: list[str], told: str
) -> None:
    run = read_run(RunDirectory(path))
    table = boots_table([run])
    assert {row[0] for row in table.rows} == set(rows)
    assert all(row["windows"] for row in as_object(table)["rows"])
    first, arms = not_begun([run])
    assert first == f"Not begun, of run {run.run_id}: {told}"
    assert all(arm.id in rows or arm.id in arms for arm in run.started.plan.arms)
    assert table.notes[-2:] == (first, arms)


def test_a_terminal_shows_it_below_the_boots() -> None:
    text = study_summary(studies([read_run(RunDirectory(LEFT))])[0], Path("x"))
    assert text.count("Not begun, of run") == 1
    assert text.count("Arms without a boot") == 1
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_run_that_goes_on_has_not_come_to_its_end(tmp_path: Path) -> None:
    run = read_run(cut_short(tmp_path / "run-1"))
    (told,) = not_begun([run])
    assert told.startswith("Not begun, of run run-1: 1 of 4 planned boots (")
    assert told.endswith(": the run has not come to its end.")


def test_an_arm_that_was_planned_and_never_begun_is_told_from_one_of_other_blocks(
    tmp_path: Path,
) -> None:
    plan = small_plan()
    draft, none = plan.arms
    other = replace(none, id="other", factors={"speculation": "other"}, blocks=(2,))
    last = boot_order(replace(plan, arms=(draft, none, other)), (1,))[-1]

    def edit(event: Any) -> Any:
        if isinstance(event, RunEnded):
            return replace(event, completed=1)
        return None if getattr(event, "boot", "").endswith(f"-{last.arm}") else event

    shape = Shape(blocks=(1,), edit=edit)
    run = read_run(make_run(tmp_path / "run-1", replace(plan, arms=(draft, none, other)), shape))
    told = not_begun([run])
    assert told == (
        f"Not begun, of run run-1: 1 of 2 planned boots ({last.arm} of block 1).",
        (
            f"Arms without a boot, and so without a row: {last.arm} (planned, not begun); "
            "other (in no block of these runs)."
        ),
    )


def test_a_run_that_carried_all_out_has_nothing_to_tell(tmp_path: Path) -> None:
    assert not_begun([read_run(make_run(tmp_path / "run-1", small_plan()))]) == ()


def test_a_study_names_missing_blocks_once_and_has_rows_for_the_others() -> None:
    runs = [read_study_run(RunDirectory(path)) for path in (CLOSED, LEFT)]
    (study,) = study_of_runs(runs)
    tables = {table.name: as_object(table) for table in study.tables}
    assert {row["block"] for row in tables["study"]["rows"]} == {1, 2}
    assert [(row["block"], row["attempts"]) for row in tables["re-runs"]["rows"]] == [(2, 1)]
    (told,) = [note for note in tables["study"]["notes"] if "missing so far" in note]
    assert told == (
        "Stratum A, missing so far and without a row: blocks 3 to 12, with 57 boots: "
        f"blocks 3 to 5 and 12 of run {CLOSED.name}, not begun: {GONE}; "
        f"blocks 4 and 12 of run {LEFT.name}, not begun: {LEFT_OUT}; "
        "blocks 6 to 11 of none of these runs."
    )
    assert "1 execution of a block does not count" in tables["study"]["notes"][0]


@pytest.mark.parametrize(
    ("blocks", "text"),
    [
        ((2,), "block 2"),
        ((1, 2), "blocks 1 and 2"),
        ((3, 2, 1), "blocks 1 to 3"),
        ((1, 3), "blocks 1 and 3"),
        ((1, 2, 4), "blocks 1, 2 and 4"),
        ((1, 2, 3, 5, 9, 10, 11), "blocks 1 to 3, 5 and 9 to 11"),
    ],
)
def test_blocks_are_named_as_one_would(blocks: tuple[int, ...], text: str) -> None:
    assert named(blocks) == text


@given(st.sets(st.integers(1, 99), min_size=1))
def test_names_tell_each_block_and_no_other(blocks: set[int]) -> None:
    found: set[int] = set()
    for part in named(blocks).split(" ", 1)[1].replace(" and ", ", ").split(", "):
        first, _, last = part.partition(" to ")
        found |= set(range(int(first), int(last or first) + 1))
    assert found == blocks


def test_other_notes_are_none_of_these() -> None:
    run = read_run(RunDirectory(LEFT))
    assert [tells(note) for note in boots_table([run]).notes] == [False, False, True, True]
