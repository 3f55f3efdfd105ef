"""A request whose own list of steps the server lost: seen on vLLM 0.29.0, and no contradiction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sealed_run

from records import schema
from records.measurement import Request


def reporting(change: Any) -> sealed_run.Shape:
    """Records in which the requests of every speculating window are changed."""

    def edit(event: Any) -> Any:
        if not isinstance(event, schema.WindowRequests) or not event.requests[0].step_accepted:
            return event
        return replace(event, requests=change(event.requests))

    return sealed_run.Shape(edit=edit)


def without_a_list(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    *others, last = requests
    return (*others, replace(last, step_accepted=()))


def test_a_list_may_be_lost(project, codes):
    project.add_run("run-3", reporting(without_a_list))
    assert codes(project) == set()


def test_the_lists_that_are_left_are_still_held_to_the_counters(project, codes):
    def too_many(requests: tuple[Request, ...]) -> tuple[Request, ...]:
        one, *others = without_a_list(requests)
        return (replace(one, step_accepted=(*one.step_accepted, *[0] * 1_000)), *others)

    project.add_run("run-3", reporting(too_many))
    assert codes(project) == {"COUNT02"}


def test_what_is_left_over_must_fit_the_requests_without_a_list(project, codes):
    def too_few(requests: tuple[Request, ...]) -> tuple[Request, ...]:
        one, *others = without_a_list(requests)
        return (replace(one, step_accepted=(0,)), *others)

    project.add_run("run-3", reporting(too_few))
    assert codes(project) == {"COUNT02"}
