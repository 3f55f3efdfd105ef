"""Caches are what the plan declares: cold ones emptied, warm ones shared, others an arm's own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kit.planning.plan_file import parse_plan
from records.cache_listing import CacheBinding, arm_digest
from records.decode import to_object
from records.digest import Digest
from remote.compile_cache import cache_directory, covers, observe

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
    arm = declare(arms[0], "none")
    place = cache_directory(tmp_path, arm)
    before = observe(place, arm)
    (place / "triton").mkdir()
    (place / "triton" / "k").write_bytes(b"12345")
    after = observe(place, arm)
    assert (before.files, before.bytes) == (0, 0)
    assert (after.files, after.bytes) == (1, 5)
    assert before.listing != after.listing


def test_a_carried_cache_is_declared_with_its_digest_by_the_arms_that_filled_it(arms, tmp_path):
    filled, other = (declare(arm, "warm") for arm in arms[:2])
    place = cache_directory(tmp_path, filled)
    carried = CacheBinding(Digest.of(b"listing"), (arm_digest(filled),))
    assert covers(carried, filled)
    assert not covers(carried, other)
    assert not covers(carried, declare(filled, "cold"))
    told = observe(place, filled, carried)
    assert (told.declared, told.carried) == ("warm, carried", str(carried.digest))
    assert observe(place, other, carried).declared == "warm"
    assert observe(place, other, carried).carried == str(carried.digest)
    assert "carried" not in to_object(observe(place, filled))


def test_an_arm_compiles_the_same_under_another_name_and_in_other_blocks(arms):
    renamed = dataclasses.replace(arms[0], id="renamed", blocks=(2,), factors={"x": "y"})
    assert arm_digest(renamed) == arm_digest(arms[0])
    assert arm_digest(dataclasses.replace(arms[0], env={"A": "1"})) != arm_digest(arms[0])
