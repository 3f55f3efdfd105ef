"""Pooled tables count as the study of the same runs does: no block twice, none without a word."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from analysis.claiming.reading import study_run
from analysis.pools import pools
from analysis.publish import studies
from analysis.reading import Run, read_run
from analysis.study import merge
from analysis.table import Table, as_object
from records.plan import boot_order
from records.run_directory import RunDirectory
from tests.comparable_runs import Made, l4_plan, made_run

GRAPH, NONE = "draft-bf16-graph", "none-bf16-graph"
PLAN = l4_plan(3, (GRAPH, NONE))


class Host:
    """Runs of one host in a directory."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def run(self, name: str, **looks: object) -> Run:
        made_run(self.data / name, PLAN, Made(**looks))  # type: ignore[arg-type]
        return read_run(RunDirectory(self.data / name))

    def boots_in_study(self, runs: list[Run]) -> set[tuple[str, str]]:
        (study,) = merge(study_run(run, RunDirectory(self.data / run.run_id)) for run in runs)
        return {(run.run_id, metrics.boot) for run in study.runs for metrics in run.metrics}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def pooled(runs: list[Run]) -> dict[str, Table]:
    (study,) = [one for one in studies(runs) if one.name.startswith("pooled-")]
    return {table.name: table for table in study.tables}


def measured(table: Table) -> set[tuple[str, str]]:
    return {(row["run"], row["boot"]) for row in as_object(table)["rows"]}


def test_a_block_in_two_shares_of_a_host_counts_once(host: Host) -> None:
    runs = [
        host.run("a", blocks=(1, 2), begun_s=100),
        host.run("b", blocks=(2, 3), begun_s=200),
    ]
    tables = pooled(runs)
    found = measured(tables["by-boot"])
    assert found == host.boots_in_study(runs)
    assert sorted(boot for _, boot in found) == sorted(one.id for one in boot_order(PLAN))
    for table in tables.values():
        assert table.notes[0] == (
            "Pooled by the rules of analysis/study.py: of 4 executions of a block 3 count. Left "
            "out: block 2 of run b (re-run: run a carried it out first)."
        )
    # The run's own tables hold what it did, whatever others did.
    (own,) = [one for one in studies(runs) if one.name == "b"]
    table = next(table for table in own.tables if table.name == "by-boot")
    assert {row["boot"] for row in as_object(table)["rows"]} == {
        one.id for one in boot_order(PLAN, (2, 3))
    }
    assert not any("Pooled" in note for note in table.notes)


def test_whole_plans_are_repetitions_and_all_of_them_count(host: Host) -> None:
    runs = [host.run("a"), host.run("b")]
    tables = pooled(runs)
    assert len(measured(tables["by-boot"])) == 2 * len(boot_order(PLAN))
    assert tables["by-boot"].notes[0].endswith("of 6 executions of a block 6 count.")


def test_no_pool_of_a_run_beside_its_re_run(host: Host) -> None:
    runs = [host.run("a", blocks=(1,), begun_s=100), host.run("b", blocks=(1,), begun_s=200)]
    assert list(pools(runs)) == []
    assert [study.name for study in studies(runs)] == ["a", "b"]


def test_a_block_that_was_cut_off_is_left_to_the_run_that_carried_it_out(host: Host) -> None:
    last = [one.id for one in boot_order(PLAN) if one.block == 3][-1]
    runs = [
        host.run("a", outcomes={last: "missing"}, begun_s=100),
        host.run("b", blocks=(3,), begun_s=200),
    ]
    tables = pooled(runs)
    assert measured(tables["by-boot"]) == host.boots_in_study(runs)
    assert "block 3 of run a (cut off: run b carried it out)" in tables["by-boot"].notes[0]
    assert last in {boot for run, boot in measured(tables["by-boot"]) if run == "b"}


def test_a_boot_that_failed_is_counted_where_its_block_counts(host: Host) -> None:
    first = boot_order(PLAN)[0]
    runs = [host.run("a", outcomes={first.id: "failed"}), host.run("b")]
    rows = as_object(pooled(runs)["boots"])["rows"]
    assert sum(row["failed"] for row in rows) == 1


def test_shares_drawn_at_random_are_pooled_as_the_study_counts_them(host: Host) -> None:
    rng = random.Random(11)
    runs = [
        host.run(
            f"r{number}",
            blocks=tuple(sorted(rng.sample((1, 2, 3), rng.randint(1, 3)))) if number else (),
            begun_s=100 + rng.randint(0, 5),
        )
        for number in range(6)
    ]
    (pool,) = pools(runs)
    members = pool.members(runs)
    used = {(r.run_id, b.started.boot) for r in members for b in r.boots if b.usable_windows}
    assert used == host.boots_in_study(runs)
