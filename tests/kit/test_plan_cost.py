"""What a plan costs, worked by hand, and as a user asks for it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from analysis.claims import arms_of_claims
from kit.main import main
from kit.planning.plan_cost import Tariff, cost_of
from kit.planning.plan_file import load_plan
from kit.planning.plan_view import expected_s

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


@pytest.mark.parametrize("price", ["free", "-1", "inf"])
def test_a_price_that_is_none_is_a_wrong_command_line(price: str) -> None:
    assert main(["plan", "cost", "demo", "--price", price]) == 2
