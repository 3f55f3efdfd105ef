"""Which blocks each of several hosts holds, from the time that a host is there.

Invariant: pure arithmetic over the plan's own estimates. A host takes blocks in their order until
the next one would not end in time, as the harness does on a host whose end is known; the host after
it begins with that block. How long the engine is bound again after the boots is known on the host
alone: the estimates have one binding, in the setup. Nothing here binds a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from records.errors import PlanError
from records.job import LEASE_RESERVE_S
from records.plan import Plan, boot_order


@dataclass(frozen=True, slots=True)
class Stay:
    """One host's blocks, its measured boots, and the seconds to the end of the last of these."""

    blocks: tuple[int, ...]
    boots: int
    seconds: int


def boot_s(plan: Plan) -> int:
    """Seconds of a boot with its windows."""
    return plan.estimates.boot_s + plan.estimates.window_s * len(plan.windows)


def primes_s(plan: Plan, blocks: Sequence[int] = ()) -> int:
    """Seconds of the unmeasured boots that fill the caches of the arms of these blocks, or all."""
    return sum(map(plan.first_boot_s, {boot.arm for boot in boot_order(plan, tuple(blocks))}))


def stay(
    plan: Plan, blocks: Sequence[int], lease_s: int, setup_s: int, *, carried: bool = False
) -> Stay:
    """The blocks, from the first of these on, that a host holds in `lease_s`; perhaps none.

    `setup_s`: before its first boot. `carried`: with a cache that was carried along, one boot
    takes the place of those that fill it.
    """
    per_boot_s = boot_s(plan)
    held = Stay((), 0, 0)
    for block in blocks:
        now = (*held.blocks, block)
        boots = held.boots + len(plan.arms_in(block))
        filling = primes_s(plan, now)
        if carried:
            filling = min(filling, per_boot_s)
        seconds = setup_s + filling + boots * per_boot_s
        if seconds + LEASE_RESERVE_S > lease_s:
            break
        held = Stay(now, boots, seconds)
    return held


def stays(plan: Plan, lease_s: int, setup_s: int) -> Iterator[Stay]:
    """Hosts one after another until all blocks are held. PlanError: none holds the next block."""
    left = tuple(range(1, plan.blocks + 1))
    while left:
        one = stay(plan, left, lease_s, setup_s)
        if not one.blocks:
            boots_s = primes_s(plan, left[:1]) + boot_s(plan) * len(plan.arms_in(left[0]))
            need_s = setup_s + boots_s + LEASE_RESERVE_S
            raise PlanError(
                f"plan {plan.id}: block {left[0]} takes {need_s} s on a host of its own, setup, "
                f"first boots and seal counted, and a host is there for {lease_s} s",
                f"--lease {-(-need_s // 60)}min at least, or fewer arms in that block",
            )
        yield one
        left = left[len(one.blocks) :]
