"""A window of a plain client is judged by what it is: user stamps, no bound on the client."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import sealed_run

from records import schema
from records.plan import Plan


@pytest.fixture
def plan() -> Plan:
    """The small plan, its second window measured once more by a plain client."""
    plan = sealed_run.small_plan()
    return replace(
        plan, windows=(*plan.windows, replace(plan.windows[1], id="c2-plain", client="asyncio"))
    )


def plain(**report: Any) -> Any:
    """Reports of the plain client's windows as such a client makes them, and changed."""
    unkept = dict.fromkeys(("lag_p50_ns", "lag_p99_ns", "lag_max_ns", "late_send_p99_ns"), -1)

    def edit(event: Any) -> Any:
        if isinstance(event, schema.WindowEnded) and event.window.endswith("-plain"):
            made = {"stamps": "user", **unkept, **report}
            return replace(event, report=replace(event.report, **made))
        return event

    return edit


def test_its_windows_are_sound_however_busy_it_was(project, codes, plan):
    edit = plain(busiest_cpu_ppm=1_000_000, clock_step_ns=10**9)
    project.add_run("run-3", sealed_run.Shape(edit=edit), plan)
    assert codes(project) == set()


def test_it_cannot_have_kernel_stamps(project, codes, plan):
    project.add_run("run-3", sealed_run.Shape(edit=plain(stamps="kernel")), plan)
    # And stamps of the kernel without a lag against them contradict themselves.
    assert codes(project) == {"CALIB02", "REQ05"}


def test_what_the_server_did_wrong_voids_its_windows_too(project, codes, plan):
    edit = plain()

    def compiled(event: Any) -> Any:
        event = edit(event)
        plain_window = isinstance(event, schema.WindowEnded) and event.window.endswith("-plain")
        return replace(event, jit_lines=("kernel",)) if plain_window else event

    project.add_run("run-3", sealed_run.Shape(edit=compiled), plan)
    assert codes(project) == {"VOID01"}
