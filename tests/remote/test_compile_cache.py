"""Caches are what the plan declares: cold ones emptied, warm ones shared, others an arm's own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kit.plan_file import parse_plan
from remote.compile_cache import cache_directory, observe

DEMO = (Path(__file__).parents[2] / "kit" / "plans" / "demo.toml").read_text()


@pytest.fixture
def arms():
    return parse_plan(DEMO, "demo.toml").arms


def declare(arm, cache):
    return dataclasses.replace(arm, cache=cache)


def test_warm_arms_share_one_directory_and_keep_it(arms, tmp_path):
    first, second = (cache_directory(tmp_path, declare(arm, "warm")) for arm in arms[:2])
    (first / "kernel").write_text("compiled")
    assert first == second
    assert (cache_directory(tmp_path, declare(arms[0], "warm")) / "kernel").exists()


def test_a_cold_arm_starts_empty_each_time_and_touches_no_other(arms, tmp_path):
    warm = cache_directory(tmp_path, declare(arms[1], "warm"))
    (warm / "kernel").write_text("compiled")
    cold = cache_directory(tmp_path, declare(arms[0], "cold"))
    (cold / "kernel").write_text("compiled")
    assert list(cache_directory(tmp_path, declare(arms[0], "cold")).iterdir()) == []
    assert (warm / "kernel").exists()


def test_an_undeclared_compilation_shows_in_the_observation(arms, tmp_path):
    place = cache_directory(tmp_path, declare(arms[0], "none"))
    before = observe(place, "none")
    (place / "triton").mkdir()
    (place / "triton" / "k").write_bytes(b"12345")
    after = observe(place, "none")
    assert (before.files, before.bytes) == (0, 0)
    assert (after.files, after.bytes) == (1, 5)
    assert before.listing != after.listing
