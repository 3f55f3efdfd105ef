"""A run that was queued again and went on at another host: each boot is of the host it ran on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.claiming.reading import StudyRun, read_study_run
from analysis.comparing.against_runs import compared_verdicts
from analysis.comparing.stratum import stratum_of
from analysis.figures.variance import variance_data
from analysis.metrics import run_metrics
from analysis.pools import pools
from analysis.reading import read_run
from analysis.study import COUNTS, merge
from analysis.study_hosts import host_means
from analysis.table import MISSING
from records import schema
from records.journal import Journal
from records.plan import PlannedBoot, boot_order
from records.run_directory import RunDirectory
from records.seal import write_seal
from tests.sealed_run import Shape, _Writer, make_run, small_plan

PLAN = small_plan(4, requests=4)
ORDER = boot_order(PLAN)


class _Moving(_Writer):
    """Writes a run that goes on at another host from the boot at `place` of the order on."""

    place = 0

    def _start(self, planned: PlannedBoot | None, *rest: Any) -> None:
        if planned == ORDER[self.place]:
            self._put(schema.RunResumed(self._shape.harness, "", self._clock()))
            self._begin("resume")
        super()._start(planned, *rest)


def moved_run(directory: Path, place: int, driver: str = "") -> Path:
    """A sealed run of host-1 that is at host-2 from the boot at `place` on."""
    there = False

    def edit(event: Any) -> Any:
        nonlocal there
        there = there or isinstance(event, schema.RunResumed)
        if not there or not isinstance(event, schema.HostObserved):
            return event
        facts = event.facts | ({"driver": driver} if driver else {})
        return replace(event, host_id="host-2", facts=facts)

    directory.mkdir(parents=True)
    with Journal.create(directory / "events.jsonl") as journal:
        writer = _Moving(directory, PLAN, Shape(edit=edit), journal)
        writer.place = place
        writer.write()
        write_seal(directory, directory.name, journal.state)
    return directory


def read(path: Path) -> StudyRun:
    return read_study_run(RunDirectory(path))


def block_starts(block: int) -> int:
    return next(place for place, boot in enumerate(ORDER) if boot.block == block)


def test_whole_blocks_belong_to_the_host_that_carried_them_out(tmp_path: Path) -> None:
    (study,) = merge([read(moved_run(tmp_path / "run", block_starts(3)))])
    assert {(one.block, one.host, one.why) for one in study.executions} == {
        (1, "host-1", COUNTS),
        (2, "host-1", COUNTS),
        (3, "host-2", COUNTS),
        (4, "host-2", COUNTS),
    }
    assert study.hosts == ("host-1", "host-2")
    assert {(one.host, one.boots) for one in host_means(study)} == {("host-1", 2), ("host-2", 2)}


def test_a_block_in_parts_on_two_hosts_never_counts(tmp_path: Path) -> None:
    (study,) = merge([read(moved_run(tmp_path / "run", block_starts(3) + 1))])
    whys = {one.block: one.why for one in study.executions}
    assert whys[3] == "moved on the way: its boots are of hosts host-1 and host-2"
    assert {whys[block] for block in (1, 2, 4)} == {COUNTS}
    assert {m.block for run in study.runs for m in run.metrics} == {1, 2, 4}


def test_such_a_block_counts_where_another_run_carried_it_out(tmp_path: Path) -> None:
    runs = [moved_run(tmp_path / "run", block_starts(3) + 1), tmp_path / "whole"]
    make_run(runs[1], PLAN, Shape(host="host-3"))
    (study,) = merge(map(read, runs))
    assert {one.host for one in study.executions if one.block == 3 and one.counts} == {"host-3"}


def test_another_driver_at_the_second_host_is_a_stratum_of_its_own(tmp_path: Path) -> None:
    moved = read(moved_run(tmp_path / "run", block_starts(3), driver="999"))
    assert stratum_of(moved).driver == "999 and absent"


def test_it_is_pooled_with_no_run_of_either_host(tmp_path: Path) -> None:
    runs = [read(moved_run(tmp_path / "run", block_starts(3)))]
    for name, host in (("one", "host-1"), ("two", "host-2")):
        make_run(tmp_path / name, PLAN, Shape(host=host))
        runs.append(read(tmp_path / name))
    assert list(pools(runs)) == []


def test_it_decides_nothing_since_its_engine_was_bound_on_one_host_alone(tmp_path: Path) -> None:
    moved = read(moved_run(tmp_path / "run", block_starts(3)))
    make_run(tmp_path / "other", PLAN, Shape())
    verdicts = compared_verdicts([moved], [read(tmp_path / "other")])
    assert {one.outcome for one in verdicts} == {"not applicable"}
    assert {one.reason for one in verdicts} == {
        "run run decides nothing: its host changed on the way"
    }


def test_the_figure_of_components_knows_both_hosts(tmp_path: Path) -> None:
    run = read_run(RunDirectory(moved_run(tmp_path / "run", block_starts(3))))
    rows = variance_data([run], run_metrics(run)).rows
    (host,) = [row for row in rows if row[:2] == ("together", "host")]
    assert host[2] == "1"
    assert MISSING not in host[3:6]
