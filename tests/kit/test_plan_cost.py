"""What a plan costs, worked by hand, and as a user asks for it."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.claims import arms_of_claims
from kit.main import main
from kit.planning.plan_cost import Tariff, cost_of, once_s
from kit.planning.plan_file import load_plan
from kit.planning.plan_view import expected_s
from kit.planning.stays import boot_s, primes_s, stay, stays
from records.errors import PlanError
from records.job import LEASE_RESERVE_S
from records.plan import boot_order
from remote.lease import Lease

PLANS = Path(__file__).parents[2] / "kit" / "plans"
L4 = load_plan(PLANS / "l4-confounds.toml")


def test_the_study_on_an_l4_worked_by_hand() -> None:
    tariff = Tariff(Decimal("0.80"), 500, layers_bytes=10_000_000_000, models_bytes=5_000_000_000)
    found = cost_of(L4, tariff)
    parts = {item.what: (item.count, item.seconds) for item in found.items}
    assert parts["pull"] == (1, 160 + 67)  # 10 GB at 500 Mbit/s, unpacked at 150 MB/s
    assert parts["models"][1] == 80
    assert parts["calibration"] == (2, 11)  # 2 x 128 tokens x 20 ms, at two concurrencies
    assert parts["first boots"] == (8, 8 * 300)
    assert parts["boots"] == (96, 96 * 75)
    assert parts["windows"] == (192, 192 * 45)
    assert found.seconds == 227 + 80 + 11 + expected_s(L4)
    assert tariff.money(3600) == Decimal("0.80")
    assert tariff.money(1) == Decimal("0.01")


def test_a_host_that_no_image_is_pulled_to_costs_its_setup_as_the_plan_has_seen_it() -> None:
    plan = load_plan(PLANS / "sm90-confounds.toml")
    found = cost_of(plan, Tariff(Decimal("3"), 500, models_bytes=520_000_000))
    first, *_ = found.items
    assert (first.what, first.seconds) == ("setup of a host", 250)
    assert found.once_s == plan.estimates.setup_s
    assert found.seconds == 250 + expected_s(plan)


def test_arms_and_what_is_paid_once_add_up_to_the_whole() -> None:
    found = cost_of(L4, Tariff(Decimal("2"), 100, 1_000_000_000))
    assert found.once_s + sum(arm.seconds for arm in found.arms) == found.seconds
    assert found.of_arms([arm.id for arm in L4.arms]) == found.seconds


def test_claims_name_their_arms() -> None:
    arms = arms_of_claims(L4)
    assert arms["dispersion.graph.cv"] == ("draft-bf16-graph",)
    assert arms["dispersion.eager.cv"] == ("draft-bf16-eager",)
    assert len(arms["goodput.inversion"]) == 4
    assert all(arms.values()), "a claim of a plan rests on arms of it"


def test_cost_as_a_user_types_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "cost", "l4-confounds", "--price", "0.80", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    total = sum(item["seconds"] for item in told["items"])
    assert told["total"]["seconds"] == total
    assert Decimal(told["total"]["cost"]) >= Decimal("0.80") * total / 3600
    assert {claim["claim"] for claim in told["claims"]} >= {"dispersion.graph.cv"}
    assert main(["plan", "cost", "smoke-cpu", "--price", "0.10"]) == 0
    assert "total" in capsys.readouterr().out


@pytest.mark.parametrize("price", ["free", "-1", "inf", "nan", "sNaN", "1e308", "1e9999999", ""])
def test_a_price_that_is_none_is_a_wrong_command_line(price: str) -> None:
    assert main(["plan", "cost", "demo", "--price", price]) == 2


def test_a_plan_on_hosts_that_are_there_for_half_an_hour_pays_setup_and_first_boots_on_each() -> (
    None
):
    plan = load_plan(PLANS / "sm90-confounds.toml")
    tariff = Tariff(Decimal("3"), 500)
    shares = [one.blocks for one in stays(plan, 1800, once_s(plan, tariff))]
    found = cost_of(plan, tariff, shares)
    assert [block for share in shares for block in share] == list(range(1, plan.blocks + 1))
    assert len(found.hosts) > 1
    parts = {item.what: (item.count, item.seconds) for item in found.items}
    hosts = len(shares)
    assert parts["setup of the hosts"] == (hosts, hosts * plan.estimates.setup_s)
    assert parts["first boots"][1] == sum(primes_s(plan, share) for share in shares)
    assert parts["boots"] == (len(boot_order(plan)), len(boot_order(plan)) * plan.estimates.boot_s)
    assert all(host.seconds <= 1800 for host in found.hosts)
    assert found.seconds == sum(host.seconds for host in found.hosts)
    assert found.seconds > cost_of(plan, tariff).seconds


def test_a_claim_is_priced_on_those_hosts_alone_that_hold_an_arm_of_it() -> None:
    plan = load_plan(PLANS / "sm90-confounds.toml")
    found = cost_of(plan, Tariff(Decimal("3"), 500), [(n + 1,) for n in range(plan.blocks)])
    holding = [host for host in found.hosts if "ngram" in {arm.arm for arm in host.arms}]
    boots = next(arm.boots for arm in found.arms if arm.arm == "ngram")
    assert 0 < len(holding) < len(found.hosts)
    each = plan.first_boot_s("ngram") + plan.estimates.setup_s
    assert found.of_arms(["ngram"]) == len(holding) * each + boots * boot_s(plan)


@given(lease_s=st.integers(1_500, 20_000), setup_s=st.integers(0, 300))
def test_hosts_take_each_block_once_in_order_and_no_host_could_take_the_next_one(
    lease_s: int, setup_s: int
) -> None:
    plan = load_plan(PLANS / "sm90-shape8b.toml")
    held = list(stays(plan, lease_s, setup_s))
    assert [b for one in held for b in one.blocks] == list(range(1, plan.blocks + 1))
    for one in held:
        assert one.seconds == cost_of(plan, Tariff(Decimal(0), 1), [one.blocks]).seconds + (
            setup_s - plan.estimates.setup_s
        )
        more = (*one.blocks, one.blocks[-1] + 1)
        if more[-1] <= plan.blocks:
            assert stay(plan, more, lease_s, setup_s) == one


def test_a_host_that_is_there_too_short_for_a_block_is_told_how_long_it_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ["plan", "cost", "sm90-confounds", "--price", "3"]
    assert main([*argv, "--lease", "5min"]) == PlanError.exit_code
    needed = re.search(r"--lease \d+min", capsys.readouterr().err)
    assert needed is not None
    plan = load_plan(PLANS / "sm90-confounds.toml")
    minutes = int(needed[0].removeprefix("--lease ").removesuffix("min"))
    assert stay(plan, (1,), minutes * 60, plan.estimates.setup_s).blocks == (1,)


@pytest.mark.parametrize("spare_s", [0, -1])
def test_a_host_is_promised_the_blocks_that_its_harness_will_begin(spare_s: int) -> None:
    """To the second, where all takes what the plan says and binding the engine takes no time."""
    plan = load_plan(PLANS / "sm90-confounds.toml")
    setup_s = plan.estimates.setup_s
    one = stay(plan, (17,), 3600, setup_s)
    filled = {arm.id for arm in plan.arms_in(17)}
    more = [arm.id for arm in plan.arms_in(18) if arm.id not in filled]
    boots = one.boots + len(plan.arms_in(18))
    both_s = setup_s + primes_s(plan, (17, 18)) + boots * boot_s(plan)
    lease_s = both_s + LEASE_RESERVE_S + spare_s
    begun = Lease(plan, lease_s, binding_s=0).fits(18, one.seconds, more)
    assert begun == (spare_s == 0)
    assert stay(plan, (17, 18), lease_s, setup_s).blocks == ((17, 18) if begun else (17,))


def test_more_hosts_than_anybody_rents_are_a_wrong_command_line() -> None:
    assert main(["plan", "cost", "demo", "--price", "1", "--hosts", "1000000000"]) == 2


def test_hosts_as_a_user_asks_for_them(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["plan", "cost", "sm90-confounds", "--price", "3"]
    assert main([*argv, "--lease", "30min", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(host["seconds"] for host in told["hosts"]) == told["total"]["seconds"]
    assert main([*argv, "--hosts", "3"]) == 0
    shown = capsys.readouterr().out
    assert "3 hosts" in shown
    assert main([*argv, "--hosts", "3", "--lease", "1h30min"]) == 2
    assert main([*argv, "--hosts", "300"]) == PlanError.exit_code


@pytest.mark.parametrize("lease", ["30", "0min", "soon", "-5min", "", "1min2h"])
def test_a_lease_that_is_no_time_is_a_wrong_command_line(lease: str) -> None:
    assert main(["plan", "cost", "demo", "--price", "1", "--lease", lease]) == 2
