"""Which arms fill the warm cache: what was carried serves or not, and a cache can be gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kit.planning.plan_file import load_plan
from records import schema
from records.cache_listing import CacheBinding, arm_digest
from records.digest import Digest
from records.plan import Plan
from remote.filling import arms_to_fill
from remote.progress import Progress

CLOCK = schema.Clock(1, 2, "0123456789ab")
SOME = Digest.of(b"")


@pytest.fixture
def plan() -> Plan:
    """Three warm arms, each of which compiles something else."""
    plan = load_plan(Path("kit/plans/demo.toml"))
    one = plan.arms[0]
    arms = tuple(replace(one, id=name, cache="warm", env={"N": name}) for name in "abc")
    return replace(plan, arms=arms)


def carried(plan: Plan, names: str) -> CacheBinding:
    return CacheBinding(SOME, tuple(arm_digest(plan.arm(name)) for name in names))


def primed(arm: str, state: str, outcome: str = "completed") -> tuple[object, ...]:
    boot = f"prime-{arm}"
    return (
        schema.BootStarted(boot, "", 1, arm, (), {}, 8000, {}, CLOCK),
        schema.EngineDecided(boot, "1", {"compile_cache": {"state": state}}),
        schema.BootEnded(boot, outcome, "", "", {}, {}),
    )


def after(*events: object) -> Progress:
    progress = Progress()
    for event in events:
        progress.see(event)
    return progress


def test_of_the_arms_that_filled_what_was_carried_one_boots_until_that_tells(plan: Plan) -> None:
    cache = carried(plan, "ab")
    assert arms_to_fill(plan, cache, Progress(), {"a", "b", "c"}) == ["a", "c"]
    served = after(*primed("a", "hit"))
    assert arms_to_fill(plan, cache, served, {"a", "b", "c"}) == ["c"]


def test_where_what_was_carried_does_not_serve_every_arm_is_counted_as_one_to_fill(
    plan: Plan,
) -> None:
    anew = after(*primed("a", "miss"))
    assert arms_to_fill(plan, carried(plan, "abc"), anew, {"a", "b", "c"}) == ["b", "c"]


def test_a_boot_that_failed_tells_nothing_of_what_was_carried(plan: Plan) -> None:
    failed = after(*primed("a", "hit", "failed"))
    assert arms_to_fill(plan, carried(plan, "abc"), failed, {"b", "c"}) == ["b"]


def test_what_was_filled_before_the_cache_went_is_filled_again_however_often_it_is_resumed(
    plan: Plan,
) -> None:
    gone = schema.RunResumed(SOME, "", CLOCK, cache_gone=True)
    back = schema.RunResumed(SOME, "", CLOCK)
    progress = after(*primed("a", "hit"), *primed("c", "miss"), gone, *primed("b", "miss"), back)
    assert progress.cache_gone
    assert arms_to_fill(plan, None, progress, {"a", "b", "c"}) == ["a", "c"]
