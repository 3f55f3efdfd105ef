"""Each rule that voids a window is decided again: beyond its bound a window that was kept is told,
and within its bounds one that was voided for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sealed_run import Shape

from audit.checks import validity
from audit.runner import audit
from records import schema
from remote.validity import RULES

FAR = 10**9


def report(**fields: Any) -> Callable[[Any], Any]:
    return lambda event: replace(event, report=replace(event.report, **fields))


def counters(**fields: Any) -> Callable[[Any], Any]:
    return lambda event: replace(event, counters=replace(event.counters, **fields))


def gpu(**facts: Any) -> Callable[[Any], Any]:
    return lambda event: replace(event, facts={**event.facts, "gpu": facts})


# What is said of one window, by the rule that it breaks.
BEYOND: dict[str, Callable[[Any], Any]] = {
    "client-lag": report(lag_p99_ns=FAR, lag_max_ns=FAR),
    "client-cpu": report(busiest_cpu_ppm=FAR),
    "client-clock": report(clock_step_ns=FAR),
    "merged": report(merged=FAR),
    "jit": lambda event: replace(event, jit_lines=("kernel",)),
    "lost-requests": report(completed=5, failed=1),
    "host-steal": lambda event: replace(event, steal_ppm=FAR),
    "counters-disagree": counters(generation_tokens=1),
    "prefix-cache": counters(prefix_cache_hits=1),
    "gpu-throttle": gpu(traces=[{"reasons": ["hardware slowdown"]}]),
    "gpu-error": gpu(new_xid_errors=1),
    "gpu-foreign": gpu(foreign_processes=1),
}


def with_first_window(project: Any, change: Callable[[Any], Any]) -> list[Any]:
    """What the audit says of void windows where this is said of the first one."""
    done: list[Any] = []

    def edit(event: Any) -> Any:
        if isinstance(event, schema.WindowEnded) and not done:
            done.append(event)
            return change(event)
        return event

    project.add_run("run-3", Shape(edit=edit))
    found = audit(project.root, project.data).findings
    return [f for f in found if f.code in ("VOID01", "VOID02")]


@pytest.mark.parametrize("rule", BEYOND)
def test_a_window_beyond_a_bound_is_not_kept(project: Any, rule: str) -> None:
    (found,) = with_first_window(project, BEYOND[rule])
    assert (found.code, found.want) == ("VOID01", f"void: {rule}")


@pytest.mark.parametrize("rule", validity._DECIDABLE)
def test_a_window_within_its_bounds_is_not_voided(project: Any, rule: str) -> None:
    (found,) = with_first_window(
        project, lambda event: replace(event, void=(f"{rule}: so it seemed",))
    )
    assert (found.code, found.got) == ("VOID02", f"void: {rule}")


def test_a_request_cut_short_voids_its_window(project: Any) -> None:
    def edit(event: Any) -> Any:
        if isinstance(event, schema.WindowRequests):
            one, *others = event.requests
            one = replace(one, chunk_tokens=one.chunk_tokens[:-1], chunk_ns=one.chunk_ns[:-1])
            return replace(event, requests=(one, *others))
        return event

    project.add_run("run-3", Shape(edit=edit))
    found = audit(project.root, project.data).findings
    assert "void: short-responses" in {f.want for f in found if f.code == "VOID01"}


def test_a_window_without_a_calibration_is_not_kept(project: Any) -> None:
    def edit(event: Any) -> Any:
        return None if isinstance(event, schema.Calibrated) else event

    project.add_run("run-3", Shape(edit=edit))
    found = audit(project.root, project.data).findings
    assert "void: calibration" in {f.want for f in found if f.code == "VOID01"}


def test_every_rule_is_broken_here() -> None:
    assert {*BEYOND, "short-responses", "calibration"} == set(validity._DECIDABLE) == set(RULES)


@pytest.mark.parametrize(
    "reason", ["mood: too slow", "", "\u202ejit: one", "Jit: one", "jit : one"]
)
def test_no_window_is_void_by_another_rule(project: Any, reason: str) -> None:
    (found,) = with_first_window(project, lambda event: replace(event, void=(reason,)))
    assert (found.code, found.severity) == ("VOID02", "error")
    assert found.want == "a rule of remote/validity.py"


@pytest.mark.parametrize(("hits", "told"), [(1, 0), (0, 1)])
def test_a_synthetic_run_may_be_void_for_its_cache(project: Any, hits: int, told: int) -> None:
    def edit(event: Any) -> Any:
        if isinstance(event, schema.WindowEnded):
            event = counters(prefix_cache_hits=hits)(event)
            return replace(event, void=("prefix-cache: so it seemed",))
        return event

    project.add_run("run-3", Shape(synthetic=True, edit=edit))
    found = audit(project.root, project.data).findings
    assert bool([f for f in found if f.code == "VOID02"]) == bool(told)
