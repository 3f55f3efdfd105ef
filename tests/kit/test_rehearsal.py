"""A rehearsal is another plan, synthetic, of the same arms, blocks and windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.planning.plan_file import load_plan
from kit.planning.rehearsal import rehearsal, shortened
from records.decode import from_object, to_object
from records.plan import Plan, boot_order
from remote.reference.main import parser, setup

PLANS = sorted((Path(__file__).parents[2] / "kit" / "plans").glob("*.toml"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_plan_can_be_rehearsed(path: Path) -> None:
    plan = load_plan(path)
    rehearsed = rehearsal(plan)
    assert from_object(Plan, to_object(rehearsed)) == rehearsed
    assert rehearsed.id != plan.id
    assert rehearsed.digest != plan.digest
    assert rehearsed.engine.name == "reference"
    assert boot_order(rehearsed) == boot_order(plan)
    assert [w.id for w in rehearsed.windows] == [w.id for w in plan.windows]
    assert [w.client for w in rehearsed.windows] == [w.client for w in plan.windows]
    for arm, was in zip(rehearsed.arms, plan.arms, strict=True):
        assert (arm.factors, arm.cache) == (was.factors, was.cache)
        drafts = ("--speculative-config", arm.speculative_config) if arm.speculative_config else ()
        assert setup(parser().parse_args([*arm.args, *drafts])).options.schedule


def test_what_is_less_than_in_the_plan_is_said() -> None:
    plan = load_plan(next(path for path in PLANS if path.stem == "l4-confounds"))
    assert shortened(plan, rehearsal(plan)) == (
        "rehearsal, synthetic, measures nothing: 130 requests a boot where the plan sends 268, "
        "at most 24 tokens a request where it asks for up to 256"
    )
    as_many = load_plan(next(path for path in PLANS if path.stem == "sm90-confounds"))
    assert shortened(as_many, rehearsal(as_many)) == (
        "rehearsal, synthetic, measures nothing: "
        "at most 24 tokens a request where it asks for up to 64"
    )


def test_arms_that_differ_in_their_names_alone_have_other_schedules() -> None:
    plan = rehearsal(load_plan(next(path for path in PLANS if path.stem == "sm90-confounds")))
    assert len({arm.args for arm in plan.arms}) > len(plan.arms) // 2
