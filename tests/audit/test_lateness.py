"""How late requests were sent is unknown where none had to wait, and only there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import sealed_run

from records import schema
from records.plan import Plan


def none_waited(event: Any) -> Any:
    if isinstance(event, schema.WindowEnded) and event.window == "c2":
        return replace(event, report=replace(event.report, late_send_p99_ns=-1))
    return event


def with_load(**changes: Any) -> Plan:
    """The small plan with another load in its window of two streams."""
    first, second = sealed_run.small_plan().windows
    load = replace(second.load, **changes)
    return replace(sealed_run.small_plan(), windows=(first, replace(second, load=load)))


def test_a_closed_loop_with_a_request_a_stream_has_none_that_waits(project, codes):
    shape = sealed_run.Shape(edit=none_waited)
    project.add_run("run-3", shape, with_load(requests=2))
    assert codes(project) == set()


@pytest.mark.parametrize("load", [{"requests": 3}, {"kind": "constant", "rate_millihertz": 1000}])
def test_in_every_other_window_one_does(project, codes, load):
    plan = with_load(**{"requests": 2, **load})
    project.add_run("run-3", sealed_run.Shape(edit=none_waited), plan)
    assert "REQ05" in codes(project)
