"""What a plan costs on a host rented by the hour: by part, by arm, by claim.

Invariant: pure arithmetic over the plan's own estimates and the lock's sizes; seconds are whole,
money is decimal and rounded up to the cent only where it is shown. Nothing here binds a run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from records.plan import Arm, Plan, boot_order

# Assumed, not measured: layers are unpacked one after another, at this rate of compressed bytes.
_UNPACK_BYTES_PER_S = 150_000_000
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Tariff:
    """`price`: per hour, in any currency. `link_mbps`: the host's downlink in Mbit/s."""

    price: Decimal
    link_mbps: int
    layers_bytes: int = 0
    models_bytes: int = 0

    def money(self, seconds: int) -> Decimal:
        """What that long costs, rounded up to the cent: the bill does the same."""
        return (self.price * seconds / 3600).quantize(_CENT, ROUND_UP)


@dataclass(frozen=True, slots=True)
class Item:
    """One part of the time; `count`: how many of it."""

    what: str
    count: int
    seconds: int


@dataclass(frozen=True, slots=True)
class ArmCost:
    """One arm's share: its boots with their windows, and its first boot that fills the caches."""

    arm: str
    boots: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Cost:
    """The whole plan, by part and by arm; `once_s`: what is paid before the first boot."""

    items: tuple[Item, ...]
    arms: tuple[ArmCost, ...]
    once_s: int

    @property
    def seconds(self) -> int:
        """From the moment that the host is there to the seal."""
        return sum(item.seconds for item in self.items)

    def of_arms(self, names: Collection[str]) -> int:
        """Seconds for these arms alone, on a host of their own."""
        return self.once_s + sum(arm.seconds for arm in self.arms if arm.arm in names)


def cost_of(plan: Plan, tariff: Tariff) -> Cost:
    """Every part of the plan's time."""
    estimates = plan.estimates
    bits_per_s = tariff.link_mbps * 1_000_000
    transfer_s = -(-tariff.layers_bytes * 8 // bits_per_s)
    unpack_s = -(-tariff.layers_bytes // _UNPACK_BYTES_PER_S)
    models_s = -(-tariff.models_bytes * 8 // bits_per_s)
    calibration_s = _calibration_s(plan)
    boots = len(boot_order(plan))
    primes = sum(arm.cache == "warm" for arm in plan.arms)
    windows = boots * len(plan.windows)
    before: tuple[Item, ...] = (
        Item("pull", 1 if tariff.layers_bytes else 0, transfer_s + unpack_s),
        Item("models", len(plan.models) if tariff.models_bytes else 0, models_s),
        Item("calibration", len(_concurrencies(plan)), calibration_s),
    )
    if estimates.setup_s and not tariff.layers_bytes:
        # No image is pulled: from staging to calibration, models too, as the plan has seen it.
        before = (Item("setup of a host", 1, estimates.setup_s),)
    return Cost(
        items=(
            *before,
            Item("first boots", primes, sum(plan.first_boot_s(arm.id) for arm in plan.arms)),
            Item("boots", boots, boots * estimates.boot_s),
            Item("windows", windows, windows * estimates.window_s),
        ),
        arms=tuple(_arm(plan, arm) for arm in plan.arms),
        once_s=sum(item.seconds for item in before),
    )


def _arm(plan: Plan, arm: Arm) -> ArmCost:
    estimates = plan.estimates
    per_boot_s = estimates.boot_s + len(plan.windows) * estimates.window_s
    boots = len(arm.blocks) or plan.blocks
    return ArmCost(arm.id, boots, boots * per_boot_s + plan.first_boot_s(arm.id))


def _concurrencies(plan: Plan) -> set[int]:
    return {window.load.concurrency for window in plan.windows}


def _calibration_s(plan: Plan) -> int:
    """Streams run side by side: requests x tokens x gap, once a concurrency."""
    asked = plan.calibration
    ms = asked.step_gap_ms * asked.output_tokens * asked.requests_per_stream
    return -(-ms * len(_concurrencies(plan)) // 1000)


def rows_by_claim(
    cost: Cost, claims: Mapping[str, Sequence[str]], tariff: Tariff
) -> list[tuple[str, str, int, Decimal]]:
    """(claim, its arms, seconds, money) of each claim measured alone; arms are shared in a plan."""
    rows = []
    for claim, arms in claims.items():
        seconds = cost.of_arms(arms)
        rows.append((claim, ", ".join(arms), seconds, tariff.money(seconds)))
    return rows
