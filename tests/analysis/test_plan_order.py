"""Arms and windows stand as their plan has them, whatever they are called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sealed_run import Shape, make_run, small_plan

from analysis.figures import study_figures
from analysis.figures.rows import arms_of, by_window
from analysis.plan_order import PlanOrder, merged
from analysis.reading import Run, read_run
from analysis.study_tables import study_of_runs
from analysis.table import Table, as_object
from analysis.tables import study_tables
from records.plan import Plan, boot_order
from records.schema import WindowEnded
from tests.comparable_runs import Made, made_run

WINDOWS = ("c1", "c8", "c64", "a-last")
ARMS = ("none", "draft", "also-none")
GONE = {("none", "c1"), ("also-none", "c64")}


def _plan() -> Plan:
    """Neither arms nor windows stand in the order of their names."""
    plan = small_plan(blocks=3)
    draft, none = plan.arms
    arms = (none, draft, replace(none, id="also-none", factors={"speculation": "none again"}))
    first = plan.windows[0]
    windows = (
        replace(first, id=name, prompts=replace(first.prompts, unique=False)) for name in WINDOWS
    )
    return replace(plan, arms=arms, windows=tuple(windows))


def _void_where_first(event: Any) -> Any:
    """The first arm has no usable c1, and the last one no c64."""
    arms = {boot.id: boot.arm for boot in boot_order(_plan())}
    if isinstance(event, WindowEnded) and (arms[event.boot], event.window) in GONE:
        return replace(event, void=("steal 70000 ppm, bound 50000",))
    return event


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("data") / "20261130T000000Z-test-plan-aaaaaa"
    return read_run(make_run(path, _plan(), Shape(clocked=True, edit=_void_where_first)))


def _parts(table: Table, key: str, by: str) -> Iterator[tuple[str, ...]]:
    """Names under `key` as they first come, for each value under `by`; of all where it is ""."""
    rows = as_object(table)["rows"]
    if not rows or key not in rows[0]:
        return
    for value in dict.fromkeys(row[by] for row in rows) if by in rows[0] else [None]:
        mine = [row for row in rows if value is None or row[by] == value]
        yield tuple(dict.fromkeys(row[key] for row in mine if row[key] not in ("", "-")))


def _ordered(names: tuple[str, ...], plan: tuple[str, ...]) -> bool:
    return names == tuple(name for name in plan if name in names)


def test_every_table_and_figure_has_the_order_of_the_plan(run: Run) -> None:
    tables = study_tables([run])
    # Blocks and their boots stand as they were carried out, and so does what was not used.
    tables = [t for t in tables if t.name != "void"]
    tables += [f.data for f in study_figures([run]) if f.name not in ("timeline", "calibration")]
    seen = set()
    for table in tables:
        for names in _parts(table, "window", "arm"):
            seen.add(table.name)
            assert _ordered(names, WINDOWS), (table.name, names)
        for names in _parts(table, "arm", "window"):
            seen.add(table.name)
            assert _ordered(names, ARMS), (table.name, names)
    assert {"by-boot", "dispersion", "latency", "goodput", "texts", "definitions"} <= seen
    assert {"decisions", "boots", "server-clock", "step-gaps"} <= seen
    variance = next(f for f in study_figures([run]) if f.name == "variance")
    scopes = dict.fromkeys(row["scope"] for row in as_object(variance.data)["rows"])
    assert list(scopes) == ["together", *ARMS]


def test_a_figure_finds_the_order_where_its_first_arm_lacks_a_window(run: Run) -> None:
    figures = {figure.name: figure for figure in study_figures([run])}
    for name in ("boots", "goodput", "step-gaps"):
        rows = as_object(figures[name].data)["rows"]
        assert GONE.isdisjoint((row["arm"], row["window"]) for row in rows)
        assert tuple(by_window(rows)) == WINDOWS
        assert tuple(arms_of(rows)) == ARMS


def test_a_study_of_hosts_has_it_too(tmp_path: Path) -> None:
    plan = _plan()
    runs = [
        made_run(tmp_path / f"20261130T00000{i}Z-test-plan-aaaaaa", plan, Made(host=f"host-{i}"))
        for i in (1, 2)
    ]
    (study,) = study_of_runs(runs)
    tables = {table.name: table for table in study.tables}
    for name in ("hosts", "host-effects"):
        assert list(_parts(tables[name], "window", "arm")) == [WINDOWS] * 3
        assert list(_parts(tables[name], "arm", "window")) == [ARMS] * 4


def test_what_no_plan_names_comes_last_and_later_plans_after_the_first() -> None:
    order = PlanOrder([_plan(), small_plan()])
    names = ["z", "c2", "a-last", "c64", "c1", "a"]
    assert sorted(names, key=order.window) == ["c1", "c64", "a-last", "c2", "a", "z"]


@given(st.permutations("abcdef"), st.lists(st.sets(st.sampled_from("abcdef")), max_size=6))
def test_parts_of_one_order_lose_no_name_and_gain_none(
    order: list[str], parts: list[set[str]]
) -> None:
    ordered = [[name for name in order if name in part] for part in parts]
    assert merged([order, *ordered]) == order
    found = merged([*ordered, order])
    assert sorted(found) == sorted(order)
