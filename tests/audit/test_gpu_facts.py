"""Of its GPUs a window says what a harness can write, or that is an error; none watched is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
import sealed_run

from audit.gpu_facts import COUNTS, faults
from records import schema
from records.plan import Plan
from remote.gpu_watch import traces
from remote.host.sample import parse_samples

TRACE = {
    "uuid": "GPU-0",
    "sm_clock_mhz": [1980, 1965],
    "memory_clock_mhz": [3201, 3201],
    "power_mw": [700_000, -1],
    "temperature_c": [40, 41],
    "reasons": ["idle", "unknown 0x200"],
}
SEEN = {"present": True, **dict.fromkeys(COUNTS, 0), "traces": [TRACE]}


@pytest.fixture
def plan() -> Plan:
    """The small plan, on a GPU."""
    plan = sealed_run.small_plan()
    return replace(plan, requirements=replace(plan.requirements, compute_capability=Decimal("9.0")))


def traced(**columns: Any) -> dict[str, Any]:
    return {**SEEN, "traces": [{**TRACE, **columns}]}


def said(gpu: Any, uuids: tuple[Any, ...] = ("GPU-0",)) -> Callable[[Any], Any]:
    """Every window says this of its GPUs, and the host has these."""

    def edit(event: Any) -> Any:
        if isinstance(event, schema.HostObserved):
            cards = [{"uuid": uuid} for uuid in uuids]
            return replace(event, facts={**event.facts, "gpus": cards})
        if isinstance(event, schema.WindowEnded):
            return replace(event, facts={**event.facts, "gpu": gpu})
        return event

    return edit


def found(codes: Any, project: Any, plan: Plan, edit: Callable[[Any], Any]) -> set[str]:
    project.add_run("run-3", sealed_run.Shape(edit=edit), plan)
    return {code for code in codes(project) if code.startswith("VOID")}


@pytest.mark.parametrize("uuids", [(), ("GPU-0",), (None, "GPU-0")])
def test_a_watched_card_is_in_order(project, codes, plan, uuids):
    assert found(codes, project, plan, said(SEEN, uuids)) == set()


def test_counts_that_the_host_does_not_show_are_in_order(project, codes, plan):
    assert found(codes, project, plan, said({**SEEN, **dict.fromkeys(COUNTS, -1)})) == set()


@pytest.mark.parametrize(
    "gpu",
    [
        "none",
        {**SEEN, "traces": [{}]},
        {**SEEN, "traces": "none"},
        {**SEEN, "traces": [TRACE, "none"]},
        {**SEEN, "traces": [TRACE, TRACE]},
        traced(uuid=""),
        traced(**{name: [] for name in TRACE if name not in ("uuid", "reasons")}),
        traced(power_mw=[1]),
        traced(power_mw=[1, 10**15]),
        traced(sm_clock_mhz=[1980, -2]),
        traced(temperature_c=[True, 40]),
        traced(reasons="hardware slowdown"),
        traced(reasons=["Hardware Slowdown"]),
        traced(reasons=["hardware slowdown\u200b"]),
        traced(reasons=[["hardware slowdown"]]),
        traced(reasons=["unknown 0x"]),
        {**SEEN, "new_ecc_errors": "3"},
        {**SEEN, "new_xid_errors": -2},
        {**SEEN, "foreign_processes": True},
    ],
)
def test_what_no_harness_writes_is_an_error(project, codes, plan, gpu):
    assert "VOID05" in found(codes, project, plan, said(gpu))


@pytest.mark.parametrize(
    ("gpu", "uuids"),
    [
        ({**SEEN, "traces": []}, ("GPU-0",)),
        (SEEN, ("GPU-0", "GPU-1")),
        (traced(reasons=["idle", "unreported"]), ("GPU-0",)),
    ],
)
def test_what_nobody_watched_is_told(project, codes, plan, gpu, uuids):
    assert found(codes, project, plan, said(gpu, uuids)) == {"VOID04"}


def test_what_the_sampler_writes_has_no_fault():
    lines = [
        "2026/11/30 12:00:00.000, GPU-0, 1980, 3201, 700.12, 40, 0x00000000000003FF, 1, 99\n",
        "2026/11/30 12:00:00.500, GPU-0, [N/A], [N/A], [N/A], [N/A], [N/A], 1, 99\n",
    ]
    (trace,) = traces(parse_samples("".join(lines)))
    columns = {name: list(getattr(trace, name)) for name in TRACE if name != "uuid"}
    assert list(faults({"gpu": {"traces": [{"uuid": trace.uuid, **columns}]}})) == []
