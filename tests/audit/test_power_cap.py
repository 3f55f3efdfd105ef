"""A GPU at its power limit: what a plan declares of it is valid, and no more than that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sealed_run

from records import schema
from records.plan import Plan

CAP = "software power cap"


@pytest.fixture
def plan() -> Plan:
    """The small plan, with a tenth of the clock declared to the power limit."""
    plan = sealed_run.small_plan()
    return replace(plan, bounds=replace(plan.bounds, power_cap_ppm=100_000))


def card(clocks: Any, *reasons: str, **columns: Any) -> dict[str, Any]:
    """A trace as remote/gpu_watch.py writes it; `columns` stand instead of its own."""
    others = ("memory_clock_mhz", "power_mw", "temperature_c")
    trace = {"uuid": "GPU-0", "sm_clock_mhz": clocks, "reasons": list(reasons)}
    return {**trace, **{name: [1] * len(clocks) for name in others}, **columns}


def sampled(*traces: dict[str, Any]) -> Callable[[Any], Any]:
    def edit(event: Any) -> Any:
        if not isinstance(event, schema.WindowEnded):
            return event
        gpu = {"present": True, "new_ecc_errors": 0, "new_xid_errors": 0, "foreign_processes": 0}
        return replace(event, facts={**event.facts, "gpu": {**gpu, "traces": list(traces)}})

    return edit


# The clocks of two windows of a large model on a card of 700 W, and those that go beyond the bound.
def test_a_declared_cap_leaves_the_window_valid(project, codes, plan):
    shape = sealed_run.Shape(edit=sampled(card([1980, 1845, 1965, 1935, 1965], CAP)))
    project.add_run("run-3", shape, plan)
    assert codes(project) == set()


@pytest.mark.parametrize(
    ("clocks", "reasons"),
    [
        ([1980, 1781], (CAP,)),
        ([1980, -1], (CAP,)),
        ([], (CAP,)),
        ([1980, "1979"], (CAP,)),
        ("none", (CAP,)),
        ([1980, 1979], (CAP, "hardware slowdown")),
        ([1980, 1979], ("software thermal slowdown",)),
    ],
)
def test_beyond_it_or_for_another_reason_the_window_must_be_void(
    project, codes, plan, clocks, reasons
):
    project.add_run("run-3", sealed_run.Shape(edit=sampled(card(clocks, *reasons))), plan)
    assert codes(project) - {"VOID05"} == {"VOID01"}  # that: no trace of a harness's


@pytest.mark.parametrize("column", ["memory_clock_mhz", "power_mw", "temperature_c"])
@pytest.mark.parametrize("samples", [[1] * 4, [], None, "1"])
def test_a_column_cut_short_tells_no_clock(project, codes, plan, column, samples):
    short = card([1980], CAP, **{column: samples})
    project.add_run("run-3", sealed_run.Shape(edit=sampled(short)), plan)
    assert codes(project) == {"VOID01", "VOID05"}


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([card([345, 1980], uuid="GPU-1")], set()),  # idle: its clock is at no limit
        ([card([345, 1980], CAP, uuid="GPU-1")], {"VOID01"}),
        ([card([345, 1980], "hardware slowdown", uuid="GPU-1")], {"VOID01"}),
    ],
)
def test_only_cards_at_their_limit_decide(project, codes, plan, others, said):
    shape = sealed_run.Shape(edit=sampled(card([1980, 1965], CAP), *others))
    project.add_run("run-3", shape, plan)
    assert codes(project) == said


def test_where_no_card_is_at_its_limit_no_clock_voids(project, codes, plan):
    project.add_run("run-3", sealed_run.Shape(edit=sampled(card([345, 1980]))), plan)
    assert codes(project) == set()


def test_where_none_is_declared_any_cap_voids(project, codes):
    shape = sealed_run.Shape(edit=sampled(card([1980, 1979], CAP)))
    project.add_run("run-3", shape, sealed_run.small_plan())
    assert codes(project) == {"VOID01"}


def test_a_window_voided_within_its_bound_is_contradicted(project, codes, plan):
    kept = sampled(card([1980, 1965], CAP))

    def voided(event: Any) -> Any:
        event = kept(event)
        void = (f"gpu-throttle: {CAP}",)
        return replace(event, void=void) if isinstance(event, schema.WindowEnded) else event

    project.add_run("run-3", sealed_run.Shape(edit=voided), plan)
    assert "VOID02" in codes(project)
