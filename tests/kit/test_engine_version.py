"""A plan for one version of the engine is refused with a lock of another."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kit.engine.setup import require_version
from kit.planning.plan_file import load_plan
from records.errors import PlanError

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "images" / "wheels-cpu.lock").read_text()


@pytest.fixture
def plan():
    return load_plan(ROOT / "kit" / "plans" / "smoke-cpu.toml")


def test_the_shipped_plan_and_lock_agree(plan):
    require_version(LOCK, plan)


def test_another_version_is_refused_before_anything_is_installed(plan):
    other = dataclasses.replace(plan, engine=dataclasses.replace(plan.engine, version="0.30.0"))
    with pytest.raises(PlanError, match=r"vLLM 0\.30\.0, images/wheels-cpu\.lock holds 0\.29\.0"):
        require_version(LOCK, other)
