"""What a plan costs on hosts rented by the hour: by host, by part, by arm, by claim.

Invariant: pure arithmetic over the plan's own estimates and the lock's sizes; seconds are whole,
money is decimal and rounded up to the cent only where it is shown. Nothing here binds a run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from kit.planning.stays import boot_s
from records.plan import Plan, boot_order

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
class HostCost:
    """One host: its blocks, and seconds by arm on it. `once_s`: what it pays before a boot."""

    blocks: tuple[int, ...]
    arms: tuple[ArmCost, ...]
    once_s: int

    @property
    def boots(self) -> int:
        """Its measured boots."""
        return sum(arm.boots for arm in self.arms)

    @property
    def seconds(self) -> int:
        """From the moment that the host is there to the seal."""
        return self.once_s + sum(arm.seconds for arm in self.arms)


@dataclass(frozen=True, slots=True)
class Cost:
    """The whole plan, by part and by arm, over all its hosts.

    `once_s`: what each host pays before its first boot.
    """

    items: tuple[Item, ...]
    arms: tuple[ArmCost, ...]
    once_s: int
    hosts: tuple[HostCost, ...]

    @property
    def seconds(self) -> int:
        """Of all hosts, each from the moment that it is there to the seal."""
        return sum(item.seconds for item in self.items)

    def of_arms(self, names: Collection[str]) -> int:
        """Seconds for these arms alone, on those of the hosts that hold one of them."""
        held = [[one.seconds for one in host.arms if one.arm in names] for host in self.hosts]
        return sum(self.once_s + sum(seconds) for seconds in held if seconds)


def once_s(plan: Plan, tariff: Tariff) -> int:
    """What passes on a host before its first boot."""
    return sum(item.seconds for item in _before(plan, tariff, 1))


def cost_of(plan: Plan, tariff: Tariff, shares: Sequence[tuple[int, ...]] = ()) -> Cost:
    """Every part of the plan's time. `shares`: the blocks of each host; empty for one host."""
    per_host_s = once_s(plan, tariff)
    hosts = tuple(
        HostCost(blocks, tuple(_arms(plan, blocks)), per_host_s)
        for blocks in shares or (tuple(range(1, plan.blocks + 1)),)
    )
    estimates = plan.estimates
    boots = sum(host.boots for host in hosts)
    windows = boots * len(plan.windows)
    first = [plan.first_boot_s(one.arm) for host in hosts for one in host.arms]
    primed = [one for host in hosts for one in host.arms if plan.arm(one.arm).cache == "warm"]
    return Cost(
        items=(
            *_before(plan, tariff, len(hosts)),
            Item("first boots", len(primed), sum(first)),
            Item("boots", boots, boots * estimates.boot_s),
            Item("windows", windows, windows * estimates.window_s),
        ),
        arms=tuple(_over_hosts(arm.id, hosts) for arm in plan.arms),
        once_s=per_host_s,
        hosts=hosts,
    )


def _before(plan: Plan, tariff: Tariff, hosts: int) -> tuple[Item, ...]:
    """What is paid before the first boot, on so many hosts."""
    estimates = plan.estimates
    if estimates.setup_s and not tariff.layers_bytes:
        # No image is pulled: from staging to calibration, models too, as the plan has seen it.
        what = "setup of a host" if hosts == 1 else "setup of the hosts"
        return (Item(what, hosts, hosts * estimates.setup_s),)
    bits_per_s = tariff.link_mbps * 1_000_000
    transfer_s = -(-tariff.layers_bytes * 8 // bits_per_s)
    unpack_s = -(-tariff.layers_bytes // _UNPACK_BYTES_PER_S)
    models_s = -(-tariff.models_bytes * 8 // bits_per_s)
    models = len(plan.models) if tariff.models_bytes else 0
    return (
        Item("pull", hosts if tariff.layers_bytes else 0, hosts * (transfer_s + unpack_s)),
        Item("models", hosts * models, hosts * models_s),
        Item("calibration", hosts * len(_concurrencies(plan)), hosts * _calibration_s(plan)),
    )


def _arms(plan: Plan, blocks: tuple[int, ...]) -> Iterator[ArmCost]:
    """The arms that have a boot in these blocks of one host, whose caches are empty at first."""
    order = boot_order(plan, blocks)
    for arm in plan.arms:
        boots = sum(boot.arm == arm.id for boot in order)
        if boots:
            yield ArmCost(arm.id, boots, boots * boot_s(plan) + plan.first_boot_s(arm.id))


def _over_hosts(arm: str, hosts: Sequence[HostCost]) -> ArmCost:
    parts = [one for host in hosts for one in host.arms if one.arm == arm]
    return ArmCost(arm, sum(one.boots for one in parts), sum(one.seconds for one in parts))


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
