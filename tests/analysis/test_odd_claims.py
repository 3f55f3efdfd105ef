"""Records that say nothing of what is claimed give no value, and end neither claims nor audit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from analysis.claiming.claim import Claim, evaluate
from analysis.claiming.gpu_quantities import kernels_compiled, spread_ratio, uncontrolled_ratio
from analysis.claiming.quantities import throughput
from analysis.claiming.reading import Reading, read_study_run
from audit.counted import count_run
from audit.recount import value_of
from records import schema
from records.errors import ClaimError
from records.run_directory import RunDirectory
from tests.sealed_run import Shape, make_run, small_plan

PLAN = small_plan()
ARMS, WINDOW = tuple(arm.id for arm in PLAN.arms[:2]), PLAN.windows[-1].id


def made(place: Path, edit: Callable[[Any], Any]) -> RunDirectory:
    return make_run(place / "20261130T000000Z-test-plan-eeeeee", PLAN, Shape(edit=edit))


def without_tokens(event: Any) -> Any:
    if isinstance(event, schema.WindowRequests):
        return replace(
            event,
            requests=tuple(replace(r, chunk_ns=(), chunk_tokens=()) for r in event.requests),
        )
    return event


def without_drafts(event: Any) -> Any:
    if isinstance(event, schema.WindowEnded):
        return replace(event, counters=replace(event.counters, drafts=0, accepted_tokens=0))
    return event


def unwarmed(event: Any) -> Any:
    return replace(event, jit_lines=()) if isinstance(event, schema.BootWarmed) else event


@pytest.mark.parametrize(
    ("edit", "function"),
    [
        (unwarmed, partial(kernels_compiled, "first", ARMS[0])),
        (without_tokens, partial(spread_ratio, throughput, *ARMS, WINDOW)),
        (without_tokens, partial(uncontrolled_ratio, throughput, *ARMS, WINDOW)),
    ],
)
def test_a_claim_without_a_value_says_so(tmp_path, edit, function):
    run = read_study_run(made(tmp_path, edit))
    with pytest.raises(ClaimError):
        evaluate(Claim("s.x", "x", "s", function, "", 2), Reading("s", (run,)))


@pytest.mark.parametrize(
    ("edit", "quantity"),
    [(without_tokens, "throughput.cv"), (without_drafts, "acceptance.mean")],
)
def test_what_is_undefined_equals_no_number_that_is_claimed(tmp_path, edit, quantity):
    counted = count_run(made(tmp_path, edit).events)
    again = value_of(f"s.{ARMS[0]}.{WINDOW}.{quantity}", "s", [counted])
    assert isinstance(again, float)
    assert math.isnan(again)
