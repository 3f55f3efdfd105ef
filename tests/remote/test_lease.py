"""A block is begun only if it ends before the host goes back; one that was begun is carried on."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from kit.planning.plan_file import load_plan
from records.plan import Plan, boot_order
from remote.lease import Lease

FAR = 10**6


@pytest.fixture
def plan() -> Plan:
    """Two arms, in three blocks; a boot takes 10 s by the plan."""
    plan = load_plan(Path("kit/plans/demo.toml"))
    estimates = replace(plan.estimates, boot_s=6, window_s=2)
    return replace(plan, blocks=3, estimates=estimates)


def test_a_host_that_stays_holds_every_block(plan):
    boots = boot_order(plan)
    assert Lease(plan, 0, 15).first_that_does_not_fit(boots[0], {}, boots) == ()


def test_by_the_plan_before_the_first_boot_then_by_the_longest_so_far(plan):
    lease = Lease(plan, 1000, binding_s=5)
    assert lease.fits(1, 1000 - 2 * 10 - 5 - 15)
    assert not lease.fits(1, 1000 - 2 * 10 - 5 - 15 + 1)
    lease.took_s += [4, 30, 8]
    assert lease.fits(1, 1000 - 2 * 30 - 5 - 15)
    assert not lease.fits(1, 1000 - 2 * 30 - 5 - 15 + 1)


def test_a_block_with_fewer_arms_fits_where_a_whole_one_does_not(plan):
    fewer = replace(plan, arms=(plan.arms[0], replace(plan.arms[1], blocks=(1, 3))))
    lease = Lease(fewer, 1000, binding_s=5)
    at_s = 1000 - 10 - 5 - 15
    assert lease.fits(2, at_s)
    assert not lease.fits(1, at_s)


def test_the_block_and_all_after_it_are_left_out_before_its_first_boot(plan):
    boots = boot_order(plan)
    lease = Lease(plan, int(time.time()) - FAR, binding_s=0)
    second = [boot for boot in boots if boot.block >= 2]
    assert lease.first_that_does_not_fit(second[0], {boots[0].id: 1}, second) == (2, 3)
    assert lease.first_that_does_not_fit(second[1], {}, second[1:]) == ()
    attempted = {second[0].id: 1}
    assert lease.first_that_does_not_fit(second[0], attempted, second) == ()
