"""The plan: complete blocks in an order anyone can recompute, and one digest for one plan."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import canonical
from records.decode import from_object, to_object
from records.errors import FormatError
from records.plan import Plan, boot_order

# From a shell: printf '20261130/1/none' | sha256sum, and so on, sorted by hash within each block.
PINNED_ORDER = [
    "b01-1-none",
    "b01-2-ngram",
    "b01-3-draft",
    "b02-1-ngram",
    "b02-2-none",
    "b02-3-draft",
    "b03-1-ngram",
    "b03-2-draft",
    "b03-3-none",
]
PINNED_DIGEST = "sha256:b0920b1b02f8be6daaa0ef5a217ab61b2e19593ff334b9639d6dbf8faad00341"


@pytest.fixture
def base(plan: Plan) -> Plan:
    return plan


def test_the_order_is_that_of_the_hashes(base: Plan) -> None:
    for block in range(1, base.blocks + 1):
        hashes = {
            hashlib.sha256(f"20261130/{block}/{arm}".encode()).hexdigest(): arm
            for arm in ("none", "ngram", "draft")
        }
        got = [boot.arm for boot in boot_order(base) if boot.block == block]
        assert got == [hashes[h] for h in sorted(hashes)]


def test_the_order_of_the_sample_is_pinned(base: Plan) -> None:
    assert [boot.id for boot in boot_order(base)] == PINNED_ORDER


def test_the_digest_of_the_sample_is_pinned(base: Plan) -> None:
    # A change here makes old runs incomparable: raise PLAN_FORMAT with it.
    assert str(base.digest) == PINNED_DIGEST


@given(seed=st.integers(-(2**40), 2**40), blocks=st.integers(1, 120), arms=st.integers(1, 12))
def test_every_block_holds_every_arm_once(plan: Plan, seed: int, blocks: int, arms: int) -> None:
    made = replace(
        plan,
        seed=seed,
        blocks=blocks,
        arms=tuple(replace(plan.arms[0], id=f"a{i}") for i in range(arms)),
    )
    order = boot_order(made)
    assert order == boot_order(made)
    assert Counter((b.block, b.arm) for b in order) == Counter(
        (block, arm.id) for block in range(1, blocks + 1) for arm in made.arms
    )
    assert [(b.block, b.position) for b in order] == [
        (block, position) for block in range(1, blocks + 1) for position in range(1, arms + 1)
    ]
    assert len({b.id for b in order}) == len(order)


def test_the_order_does_not_depend_on_how_arms_are_listed(base: Plan) -> None:
    turned = replace(base, arms=tuple(reversed(base.arms)))
    assert [b.id for b in boot_order(turned)] == [b.id for b in boot_order(base)]
    assert turned.digest != base.digest


def test_seeds_give_different_orders(base: Plan) -> None:
    orders = {tuple(b.arm for b in boot_order(replace(base, seed=s))) for s in range(50)}
    assert len(orders) > 30


def test_a_plan_survives_its_encoding(base: Plan) -> None:
    again = from_object(Plan, canonical.decode(canonical.encode(to_object(base))))
    assert again == base
    assert again.digest == base.digest


def test_models_are_listed_once_in_order(base: Plan) -> None:
    assert base.models == ("tiny", "tiny-draft")
    assert base.arm("draft").draft_model == "tiny-draft"
    assert base.arm("ngram").models == ("tiny",)
    with pytest.raises(FormatError, match="no arm 'other'"):
        base.arm("other")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "plan format 2"),
        ({"blocks": 0}, "at least one block"),
        ({"arms": ()}, "at least one block, one arm"),
        ({"windows": ()}, "one window"),
        ({"id": "Upper"}, "plan id"),
        ({"id": "-x"}, "plan id"),
        ({"id": "x\n"}, "plan id"),
        ({"id": "x" * 41}, "plan id"),
    ],
)
def test_plans_that_contradict_themselves(plan: Plan, change: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        replace(plan, **change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": "a/b"}, "arm id"),
        ({"cache": "tepid"}, "cache 'tepid'"),
        ({"speculative_config": "{"}, "speculative_config"),
        ({"speculative_config": "[]"}, "not a JSON object"),
    ],
)
def test_arms_that_cannot_be(plan: Plan, change: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        replace(plan.arms[0], **change)


def test_names_are_unique(plan: Plan) -> None:
    with pytest.raises(FormatError, match="two arms are called 'none'"):
        replace(plan, arms=(*plan.arms, plan.arms[0]))
    with pytest.raises(FormatError, match="two windows are called 'c1'"):
        replace(plan, windows=plan.windows * 2)


def test_an_arm_has_boots_in_its_own_blocks_and_the_order_of_the_others_stays(base: Plan) -> None:
    some = replace(base.arms[0], blocks=(1, 3))
    plan = replace(base, arms=(some, *base.arms[1:]))
    boots = boot_order(plan)
    assert {boot.block for boot in boots if boot.arm == some.id} == {1, 3}
    kept = [boot.arm for boot in boot_order(base) if boot.block == 2 and boot.arm != some.id]
    assert [boot.arm for boot in boots if boot.block == 2] == kept
    assert [boot.position for boot in boots if boot.block == 2] == [1, 2]
    assert from_object(Plan, to_object(plan)) == plan


@pytest.mark.parametrize("blocks", [(3, 1), (1, 1), (0,), (1, 4)])
def test_blocks_of_an_arm_are_blocks_of_the_plan_once_and_ascending(
    base: Plan, blocks: tuple[int, ...]
) -> None:
    with pytest.raises(FormatError):
        replace(base, arms=(replace(base.arms[0], blocks=blocks), *base.arms[1:]))


def test_no_block_is_without_an_arm(base: Plan) -> None:
    with pytest.raises(FormatError, match="no arm has a boot in block 2"):
        replace(base, arms=tuple(replace(arm, blocks=(1, 3)) for arm in base.arms))
