"""A request whose own list of steps the server lost: seen on vLLM 0.29.0, and no contradiction."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sealed_run

from records import schema
from records.digest import Digest
from records.measurement import Request
from tests.engine_words import metrics_page


def reporting(change: Any) -> sealed_run.Shape:
    """Records in which the requests of every speculating window are changed."""

    def edit(event: Any) -> Any:
        if not isinstance(event, schema.WindowRequests) or not event.requests[0].step_accepted:
            return event
        return replace(event, requests=change(event.requests))

    return sealed_run.Shape(edit=edit)


def without_a_list(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """One whose last chunk may have held two steps."""
    lost = next(r for r in requests if r.chunk_tokens[-1] > 1)
    return tuple(replace(r, step_accepted=()) if r is lost else r for r in requests)


def test_a_list_may_be_lost(project, codes):
    project.add_run("run-3", reporting(without_a_list))
    assert codes(project) == set()


def test_the_lists_that_are_left_are_still_held_to_the_counters(project, codes):
    def too_many(requests: tuple[Request, ...]) -> tuple[Request, ...]:
        one, *others = without_a_list(requests)
        return (replace(one, step_accepted=(*one.step_accepted, *[0] * 1_000)), *others)

    project.add_run("run-3", reporting(too_many))
    assert codes(project) == {"COUNT02", "VOID03"}


def test_what_is_left_over_must_fit_the_requests_without_a_list(project, codes):
    def too_few(requests: tuple[Request, ...]) -> tuple[Request, ...]:
        one, *others = without_a_list(requests)
        return (replace(one, step_accepted=(0,)), *others)

    project.add_run("run-3", reporting(too_few))
    assert codes(project) == {"COUNT02", "VOID03"}


def more_than_the_tokens(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """Lists of which one took over from another; their sums stay."""
    one, two, *others = requests
    steps = (*two.step_accepted, *one.step_accepted[1:])
    short = replace(one, step_accepted=one.step_accepted[:1])
    return (short, replace(two, step_accepted=steps), *others)


def without_one_at_will(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """A list left out of a request whose last chunk held one token, so one step."""
    first, *others = requests
    return (replace(ending_alone(first), step_accepted=()), *others)


def ending_alone(request: Request) -> Request:
    """The same tokens, and as many accepted, the last token in a chunk of its own."""
    *chunks, before, last = request.chunk_tokens
    *steps, one, two = request.step_accepted
    return replace(
        request,
        chunk_tokens=(*chunks, before + last - 1, 1),
        step_accepted=(*steps, one + last - 1, two - last + 1),
    )


def left_for_others(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """Beside a lost list the others accept more than they did, at the cost of the lost one."""
    lost, *others = sorted(without_a_list(requests), key=lambda r: len(r.step_accepted))
    higher = [
        replace(r, step_accepted=(r.step_accepted[0] + 1, *r.step_accepted[1:])) for r in others
    ]
    return tuple(sorted((lost, *higher), key=lambda r: r.index))


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        (more_than_the_tokens, {"COUNT02", "VOID03"}),
        (without_one_at_will, {"COUNT02"}),
        (left_for_others, {"COUNT02", "VOID03"}),
    ],
)
def test_a_lost_list_hides_no_forgery(
    project: Any, codes: Any, forged: Callable[..., Any], said: set[str]
) -> None:
    project.add_run("run-3", reporting(forged))
    assert codes(project) == said


@pytest.mark.parametrize("listed", [True, False])
def test_all_lists_of_a_window_cannot_be_left_out(
    project: Any, codes: Any, *, listed: bool
) -> None:
    """The server listed its steps in the boot's other window."""

    def edit(event: Any) -> Any:
        if not isinstance(event, schema.WindowRequests) or not event.requests[0].step_accepted:
            return event
        requests = tuple(ending_alone(r) for r in event.requests)
        if event.window == "c2" and not listed:
            requests = tuple(replace(r, step_accepted=()) for r in requests)
        return replace(event, requests=requests)

    project.add_run("run-3", sealed_run.Shape(edit=edit))
    assert codes(project) == (set() if listed else {"COUNT02"})


@pytest.mark.parametrize(("listed", "said"), [(False, set()), (True, {"VOID03", "COUNT02"})])
def test_two_steps_in_a_last_chunk_are_expected_where_the_list_is_lost(
    project: Any, codes: Any, *, listed: bool, said: set[str]
) -> None:
    def joined(requests: tuple[Request, ...]) -> tuple[Request, ...]:
        first, *others = requests
        if first.index:
            return requests
        *chunks, before, last = first.chunk_tokens
        steps = first.step_accepted[:-1] if listed else ()
        one = replace(
            first,
            chunk_tokens=(*chunks, before + last),
            chunk_ns=(*first.chunk_ns[:-2], first.chunk_ns[-1]),
            step_accepted=steps,
        )
        return (one, *others)

    def edit(event: Any) -> Any:
        if isinstance(event, schema.WindowRequests) and event.requests[0].step_accepted:
            return replace(event, requests=joined(event.requests))
        if isinstance(event, schema.WindowEnded) and event.counters.drafts > 0:
            report = replace(event.report, chunks=event.report.chunks - 1)
            return replace(event, report=report)
        return event

    project.add_run("run-3", sealed_run.Shape(edit=edit))
    assert codes(project) == said


def a_token_later(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """One token moved from a chunk to the next; the list, and every sum, stays."""
    one, *others = requests
    first, before, after, *rest = one.chunk_tokens
    return (replace(one, chunk_tokens=(first, before - 1, after + 1, *rest)), *others)


def with_an_empty_step(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """A step of the first request accepted nothing, and another one more; chunks and list agree."""
    first, *others = requests
    steps, chunks = list(first.step_accepted), list(first.chunk_tokens)
    less, more = [i for i, accepted in enumerate(steps[:-1]) if accepted == 1][:2]
    for at, change in ((less, -1), (more, 1)):
        steps[at] += change
        chunks[at + 1] += change
    return (replace(first, chunk_tokens=tuple(chunks), step_accepted=tuple(steps)), *others)


def with_an_empty_step_moved(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """The list of that request has it a step later; every sum stays."""
    first, *others = with_an_empty_step(requests)
    steps = list(first.step_accepted)
    at = steps.index(0)
    steps[at], steps[at + 1] = steps[at + 1], steps[at]
    return (replace(first, step_accepted=tuple(steps)), *others)


def a_longer_last_step(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """Each request's last step accepted one more, which its end would have cut off."""
    return tuple(
        replace(r, step_accepted=(*r.step_accepted[:-1], r.step_accepted[-1] + 1)) for r in requests
    )


def a_better_step(requests: tuple[Request, ...]) -> tuple[Request, ...]:
    """Each request's first step accepted one more than its chunk holds."""
    return tuple(
        replace(r, step_accepted=(r.step_accepted[0] + 1, *r.step_accepted[1:])) for r in requests
    )


@pytest.mark.parametrize(
    ("forged", "raised", "said"),
    [
        (a_token_later, 0, {"VOID03"}),
        (with_an_empty_step, 0, set()),
        (with_an_empty_step_moved, 0, {"VOID03"}),
        (a_longer_last_step, 1, set()),  # as true as what was there, by all that is recorded
        (a_longer_last_step, 0, {"COUNT02", "VOID03"}),
        (a_better_step, 1, {"VOID03"}),
    ],
)
def test_where_all_lists_are_told_there_is_no_slack(
    project: Any, codes: Any, forged: Callable[..., Any], raised: int, said: set[str]
) -> None:
    """The counters, and the pages that they are from, agree with the lists where these rise."""

    def edit(event: Any) -> Any:
        if isinstance(event, schema.WindowRequests) and event.requests[0].step_accepted:
            return replace(event, requests=forged(event.requests))
        if isinstance(event, schema.WindowEnded) and event.counters.drafts > 0:
            return with_more_accepted(event, raised * event.report.planned, project.run("run-3"))
        return event

    project.add_run("run-3", sealed_run.Shape(edit=edit))
    assert codes(project) == said


def with_more_accepted(event: schema.WindowEnded, more: int, directory: Path) -> schema.WindowEnded:
    """The window's counters, and the page after it, with so many more accepted tokens."""
    counters = event.counters
    counters = replace(counters, accepted_tokens=counters.accepted_tokens + more)
    name = next(name for name in event.metrics if ".after." in name)
    page = gzip.compress(metrics_page(counters), mtime=0)
    (directory / name).write_bytes(page)
    metrics = {**event.metrics, name: Digest.of(page)}
    return replace(event, counters=counters, metrics=metrics)
