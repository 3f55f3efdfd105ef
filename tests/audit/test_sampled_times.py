"""Samplers watch for no less than a window, and no longer than its events are apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sealed_run

from records import schema

THREAD = {"on_cpu_ns": 3, "waiting_ns": 2, "timeslices": 1}


def said(facts: Callable[[int], dict[str, Any]]) -> sealed_run.Shape:
    """Every window has these facts, made from its length."""

    def edit(event: Any) -> Any:
        if isinstance(event, schema.WindowEnded):
            return replace(event, facts=facts(event.report.wall_ns))
        return event

    return sealed_run.Shape(edit=edit)


@pytest.mark.parametrize(
    "facts",
    [
        lambda wall_ns: {"host": {"duration_ns": wall_ns}, "busiest_thread": THREAD},
        lambda wall_ns: {"busiest_thread": {**THREAD, "on_cpu_ns": wall_ns - 2}},
        lambda _: {"host": {"busy_ppm": 1}, "busiest_thread": None},
        lambda _: {},
    ],
)
def test_what_fits_is_in_order(project, codes, facts):
    project.add_run("run-3", said(facts))
    assert codes(project) == set()


@pytest.mark.parametrize("length", [lambda w: w - 1, lambda w: w * 1000, str])
def test_a_host_watched_for_another_time_is_told(project, codes, length):
    project.add_run("run-3", said(lambda wall_ns: {"host": {"duration_ns": length(wall_ns)}}))
    assert codes(project) == {"REQ04"}


@pytest.mark.parametrize(
    "times",
    [
        {"on_cpu_ns": 10**18},
        {"waiting_ns": 10**18},
        {"waiting_ns": -5},
        {"on_cpu_ns": "3"},
        {"on_cpu_ns": None},
        {"timeslices": True},
    ],
)
def test_a_thread_of_other_times_is_told(project, codes, times):
    project.add_run("run-3", said(lambda _: {"busiest_thread": {**THREAD, **times}}))
    assert codes(project) == {"REQ04"}
