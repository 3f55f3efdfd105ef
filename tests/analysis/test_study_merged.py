"""Runs of one plan as one study: nothing twice, nothing without a reason, hosts told apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.claiming.reading import BootRecord, StudyRun, read_study_run
from analysis.study import COUNTS, StudyStratum, merge, outcomes
from analysis.study_hosts import _tails, host_effects, host_means
from analysis.study_tables import merged_tables, study_of_runs
from analysis.table import as_object
from records.errors import ForeignDirectoryError
from records.plan import PlannedBoot, boot_order
from records.run_directory import RunDirectory
from tests.comparable_runs import Made, l4_plan, made_run
from tests.sealed_run import Shape

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "records" / "data" / "20261130T115921Z-smoke-cpu-5d0eba"
GRAPH, NONE = "draft-bf16-graph", "none-bf16-graph"
PLAN = l4_plan(3, (GRAPH, NONE))
BOOTS = {(b, arm) for b in (1, 2, 3) for arm in (GRAPH, NONE)}
Maker = Callable[..., StudyRun]


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    def run(name: str, **looks: object) -> StudyRun:
        return made_run(tmp_path / name, PLAN, Made(**looks))  # type: ignore[arg-type]

    return run


def told(study: StudyStratum) -> dict[tuple[str, int], str]:
    return {(one.run, one.block): one.why for one in study.executions}


def boots(study: StudyStratum) -> list[tuple[str, str]]:
    return sorted((run.run_id, m.boot) for run in study.runs for m in run.metrics)


def place(block: int, arm: str) -> str:
    """The planned boot of an arm in a block of the test plan."""
    return next(b.id for b in boot_order(PLAN) if (b.block, b.arm) == (block, arm))


def test_shares_of_several_hosts_are_one_repetition(make: Maker) -> None:
    (study,) = merge([make("a", host="h-1", blocks=(1, 2)), make("b", host="h-2", blocks=(3,))])
    assert set(told(study).values()) == {COUNTS}
    assert study.hosts == ("h-1", "h-2")
    assert {(p.block, p.arm) for p, (o, _) in outcomes(study).items() if o == "completed"} == BOOTS
    assert len(boots(study)) == len(BOOTS)


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_block_given_out_twice_counts_once_where_it_was_begun_first(
    make: Maker, first: str
) -> None:
    begun = {"a": 100, "b": 100}
    begun[first] = 50
    runs = [make(name, host=name, blocks=(2,), begun_s=begun[name]) for name in ("a", "b")]
    (study,) = merge(runs)
    other = "b" if first == "a" else "a"
    assert told(study) == {
        (first, 2): COUNTS,
        (other, 2): f"re-run: run {first} carried it out first",
    }
    assert {run for run, _ in boots(study)} == {first}


def test_a_whole_plan_carried_out_again_is_a_repetition(make: Maker) -> None:
    """On the same host or on another: fresh boots are replicates, and none may be picked."""
    (study,) = merge([make("a"), make("b"), make("c", host="h-2")])
    assert set(told(study).values()) == {COUNTS}
    assert len(boots(study)) == 3 * len(BOOTS)
    assert all(len(counted) == 3 for _, counted in outcomes(study).values())


def test_a_block_that_was_cut_off_counts_where_it_was_carried_out(make: Maker) -> None:
    lost = make("a", host="h-1", blocks=(1,), outcomes={place(1, GRAPH): "missing"}, begun_s=10)
    again = make("b", host="h-2", blocks=(1,), begun_s=20)
    (study,) = merge([lost, again])
    assert told(study) == {("a", 1): "cut off: run b carried it out", ("b", 1): COUNTS}
    assert {run for run, _ in boots(study)} == {"b"}


def test_a_block_that_nobody_carried_out_counts_where_it_came_furthest(make: Maker) -> None:
    def cut(name: str, *arms: str, begun_s: int) -> StudyRun:
        missing = {place(1, arm): "missing" for arm in arms}
        return make(name, host=name, blocks=(1,), outcomes=missing, begun_s=begun_s)

    (study,) = merge(
        [cut("a", GRAPH, NONE, begun_s=5), cut("b", GRAPH, begun_s=7), cut("c", GRAPH, begun_s=9)]
    )
    assert told(study) == {
        ("a", 1): "not begun",
        ("b", 1): COUNTS,
        ("c", 1): "cut off: run b came further",
    }
    found = {p.arm: o for p, (o, _) in outcomes(study).items() if p.block == 1}
    assert found == {GRAPH: "missing", NONE: "completed"}


def test_a_failed_boot_is_an_outcome_not_a_reason_to_try_elsewhere(make: Maker) -> None:
    failed = make("a", host="h-1", blocks=(1,), outcomes={place(1, GRAPH): "failed"}, begun_s=10)
    again = make("b", host="h-2", blocks=(1,), begun_s=20)
    (study,) = merge([failed, again])
    assert told(study)["a", 1] == COUNTS
    assert told(study)["b", 1].startswith("re-run")
    found = {p.arm: o for p, (o, _) in outcomes(study).items() if p.block == 1}
    assert found == {GRAPH: "failed", NONE: "completed"}
    assert {run for run, _ in boots(study)} == {"a"}


def test_of_attempts_the_last_counts(tmp_path: Path) -> None:
    run = made_run(tmp_path / "a", PLAN, Made(shape=Shape(interrupt_first=True)))
    (study,) = merge([run])
    found = [boot for _, boot in boots(study)]
    assert sum(boot.endswith(".2") for boot in found) == 1
    assert len(found) == len(BOOTS)
    (table,) = [t for t in merged_tables([study]) if t.name == "re-runs"]
    (row,) = as_object(table)["rows"]
    assert (row["attempts"], row["planned"], row["counts"]) == (3, 2, "yes")
    assert row["why"].startswith("the last attempt counts: b01-1-")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_boot_counts_twice_whatever_the_shares(base: StudyRun, data: st.DataObject) -> None:
    runs = []
    for number in range(data.draw(st.integers(1, 5))):
        blocks = tuple(sorted(data.draw(st.sets(st.integers(1, 3), max_size=3))))
        gone = data.draw(st.sets(st.sampled_from([b.planned.id for b in base.boots])))
        begun = data.draw(st.integers(0, 3))
        runs.append(_share(base, f"r{number}", blocks, gone, begun))
    (study,) = merge(runs)
    found = boots_of(study)
    assert len(found) == len(set(found))
    shares = [one for one in study.executions if one.counts and one.shared]
    assert len({one.block for one in shares if one.carried_out}) == len(
        [one for one in shares if one.carried_out]
    )
    for one in study.executions:
        assert one.why
        # Whoever is carried out by anyone is covered by an execution that counts.
        if one.carried_out:
            assert any(o.counts and o.block == one.block for o in study.executions)
    assert merge(runs[::-1]) == (study,)


def boots_of(study: StudyStratum) -> list[tuple[str, str]]:
    return [(run.run_id, boot.started.boot) for run in study.runs for boot in run.boots]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> StudyRun:
    """A run of the whole plan, for others to be made from."""
    return made_run(tmp_path_factory.mktemp("base") / "base", PLAN, Made())


def _share(
    base: StudyRun, name: str, blocks: tuple[int, ...], gone: set[str], begun: int
) -> StudyRun:
    def dated(boot: BootRecord) -> BootRecord:
        clock = replace(boot.started.clock, realtime_ns=begun * 10**9 + 1)
        return replace(boot, run=name, started=replace(boot.started, clock=clock))

    return replace(
        base,
        started=replace(base.started, run_id=name, blocks=blocks),
        boots=tuple(
            dated(b)
            for b in base.boots
            if (not blocks or b.planned.block in blocks) and b.planned.id not in gone
        ),
        metrics=tuple(replace(m, run_id=name) for m in base.metrics),
    )


def test_drivers_gpus_and_engines_are_strata(make: Maker) -> None:
    runs = [
        make("a"),
        make("b", driver="570.9"),
        make("c", gpu="NVIDIA H200"),
        make("d", version="0.30.0"),
    ]
    found = merge(runs)
    assert [tuple(r.run_id for r in s.runs) for s in found] == [("c",), ("b",), ("a",), ("d",)]
    tables = {t.name: t for t in merged_tables(found)}
    assert {row[0] for row in tables["study"].rows} == {"A", "B", "C", "D"}
    notes = [note for note in tables["study"].notes if note.startswith("Stratum ")]
    assert len(notes) == 4
    assert "NVIDIA H200, driver 580.1, vllm 0.29.0" in notes[0]
    assert tables["host-effects"].rows == ()


def test_a_run_named_twice_is_refused(make: Maker) -> None:
    run = make("a")
    with pytest.raises(ForeignDirectoryError, match="run a is named more than once"):
        merge([run, run])


def slow(factor: float, swing: float = 0.004) -> Callable[[PlannedBoot], float]:
    return lambda boot: 2 * factor * (1 + swing * (boot.block - 2))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> StudyStratum:
    """Six hosts of which the last is a fifth slower."""
    top = tmp_path_factory.mktemp("fleet")
    factors = (1.0, 1.004, 0.997, 1.002, 0.999, 1.2)
    runs = [
        made_run(top / f"r{i}", PLAN, Made(host=f"h-{i}", lengths=slow(factor)))
        for i, factor in enumerate(factors)
    ]
    (study,) = merge(runs)
    return study


def test_the_host_that_is_apart_is_named(fleet: StudyStratum) -> None:
    found = host_means(fleet)
    assert {one.host for one in found if one.outlier} == {"h-5"}
    (row,) = [one for one in found if (one.host, one.arm) == ("h-5", GRAPH)]
    assert row.against_others == pytest.approx(1 / 1.2, rel=0.01)
    assert row.boots == 3


def test_hosts_that_are_alike_are_not(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path / f"r{i}", PLAN, Made(host=f"h-{i}", lengths=slow(1 + 0.002 * i)))
        for i in range(4)
    ]
    found = host_means(merge(runs)[0])
    assert not any(one.outlier for one in found)
    assert all(one.p is not None for one in found)


def test_two_hosts_name_none(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path / host, PLAN, Made(host=host, lengths=slow(factor)))
        for host, factor in (("a", 1.0), ("b", 2.0))
    ]
    found = host_means(merge(runs)[0])
    assert {one.p for one in found} == {None}
    assert found[0].against_others == pytest.approx(2.0, rel=0.01)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=4, max_size=12, unique=True))
def test_the_largest_distance_is_grubbs(values: list[float]) -> None:
    """Against the formula of the test itself (NIST e-Handbook 1.3.5.17.1)."""
    logs = np.array(values)
    others = (logs.sum() - logs) / (logs.size - 1)
    n, far = logs.size, int(np.argmax(np.abs(logs - logs.mean())))
    statistic = abs(logs[far] - logs.mean()) / logs.std(ddof=1)
    room = (n - 1) ** 2 - n * statistic**2
    if room < 1e-9 or statistic < 1e-9:
        return
    t = np.sqrt(n * (n - 2) * statistic**2 / room)
    tails = _tails(logs - others, logs)
    assert tails[far] == pytest.approx(2 * stats.t.sf(t, n - 2), rel=1e-5)
    assert tails[far] == pytest.approx(tails.min())


def test_equal_hosts_have_no_distance() -> None:
    logs = np.log(np.full(5, 3.3))
    assert list(_tails(logs - logs[::-1], logs)) == [1.0] * 5


def test_hosts_and_boots_are_told_apart(fleet: StudyStratum) -> None:
    found = {(e.quantity, e.arm): e for e in host_effects(fleet)}
    effects = found["throughput", GRAPH]
    assert (effects.hosts, effects.boots) == (6, 18)
    assert effects.found is not None
    assert effects.found.host_share > 0.9
    assert effects.found.p_host < 1e-6
    assert found["acceptance", GRAPH].problem.startswith("boots do not differ within any host")


def test_the_tables_hold_every_planned_boot(fleet: StudyStratum) -> None:
    tables = {t.name: as_object(t)["rows"] for t in merged_tables([fleet])}
    assert [(row["block"], row["completed"]) for row in tables["study"]] == [
        (b, 6) for b in (1, 1, 2, 2, 3, 3)
    ]
    assert tables["study"][0]["hosts"] == "h-0, h-1, h-2 and 3 more"
    assert tables["re-runs"] == []
    assert len(tables["hosts"]) == 6 * 2
    (row,) = [r for r in tables["hosts"] if r["host"] == "h-5" and r["arm"] == NONE]
    assert row["outlier"] == "yes"
    assert {r["quantity"] for r in tables["host-effects"]} == {"throughput", "step gap p50"}
    assert all(row["boot_sd_percent"] is not None for row in tables["host-effects"])
    (told,) = [
        note
        for table in merged_tables([fleet])
        for note in table.notes
        if note.startswith("Stratum A, without a row since boots do not differ within any host")
    ]
    assert told.endswith(f": {GRAPH} c64 (acceptance).")


def test_one_run_of_a_plan_is_no_study(make: Maker) -> None:
    shipped = read_study_run(RunDirectory(SHIPPED))
    one, two = make("a"), make("b")
    assert study_of_runs([shipped, one]) == []
    (study,) = study_of_runs([shipped, one, two])
    assert (study.name, study.runs) == ("study-l4-confounds", ("a", "b"))


def test_the_shipped_run_is_whole() -> None:
    (study,) = merge([read_study_run(RunDirectory(SHIPPED))])
    assert {outcome for outcome, _ in outcomes(study).values()} == {"completed"}
    assert study.stratum.capability == "CPU"


def test_a_host_is_apart_only_after_reckoning_with_all_that_were_looked_at(
    base: StudyRun,
) -> None:
    """Of four hosts and two arms, one distance that would pass by itself does not."""
    factors = (1.0, 1.01, 0.99, 1.075)
    runs = []
    for place, factor in enumerate(factors):
        run = _share(base, f"r{place}", (), set(), 1)
        metrics = tuple(
            replace(
                m, output_tokens_per_s=m.output_tokens_per_s * (factor if m.arm == GRAPH else 1)
            )
            for m in run.metrics
        )
        boots = tuple(replace(boot, host_id=f"h-{place}") for boot in run.boots)
        runs.append(replace(run, host_id=f"h-{place}", metrics=metrics, boots=boots))
    (study,) = merge(runs)
    logs = np.log(factors)
    alone = _tails(logs - (logs.sum() - logs) / 3, logs)
    found = [one for one in host_means(study) if (one.host, one.arm) == ("h-3", GRAPH)]
    assert alone[3] < 0.05 < 8 * alone[3]
    assert found[0].p == pytest.approx(8 * alone[3])
    assert not found[0].outlier
