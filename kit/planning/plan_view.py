"""A plan told to a person or a machine: order, windows, expected duration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kit.planning.stays import boot_s, primes_s, stay
from records.decode import to_object
from records.load import Window
from records.plan import Plan, boot_order


def expected_s(plan: Plan, blocks: Sequence[int] = ()) -> int:
    """Seconds that these blocks, or all, take once all is installed, as the plan estimates."""
    return len(boot_order(plan, tuple(blocks))) * boot_s(plan) + primes_s(plan, blocks)


def lease_text(plan: Plan, minutes: int, blocks: Sequence[int] = ()) -> Iterator[str]:
    """Which of the blocks (empty: of all), from the first on, a host holds that is there so long.

    Setup and boots by the plan's estimates. With a cache that was carried along, one boot takes
    the place of those that fill it.
    """
    wanted = tuple(blocks or range(1, plan.blocks + 1))
    for what, carried in (("an empty cache", False), ("a carried cache", True)):
        held = stay(plan, wanted, minutes * 60, plan.estimates.setup_s, carried=carried)
        plural = "s" if len(held.blocks) > 1 else ""
        told = f"block{plural} {', '.join(map(str, held.blocks))}" if held.blocks else "no block"
        yield (
            f"{minutes} minutes, {what}: {told}; "
            f"{held.boots} boots, {held.seconds} s of {minutes * 60}"
        )


def window_text(window: Window) -> str:
    """One line on a window: load, budget, endpoint, prompts, output length."""
    load = window.load
    rate = f" at {load.rate_millihertz / 1000:g}/s" if load.rate_millihertz else ""
    least, most = window.sampling.min_tokens, window.sampling.max_tokens
    limits = []
    if load.requests:
        limits.append(f"{load.requests} requests")
    if load.duration_ms:
        limits.append(f"{load.duration_ms / 1000:g} s")
    return (
        f"{load.kind}, concurrency {load.concurrency}{rate}, {' or '.join(limits)}; "
        f"{window.endpoint}, {window.prompts.count} {window.prompts.source} prompts, "
        f"{least if least == most else f'{least}-{most}'} tokens out"
        f"{f'; by a plain {window.client} client' if window.by_peer else ''}"
    )


def overview(plan: Plan) -> dict[str, Any]:
    """Everything `kit plan show` prints, and the plan itself."""
    return {
        "digest": str(plan.digest),
        "order": [to_object(boot) for boot in boot_order(plan)],
        "expected_s": expected_s(plan),
        "plan": to_object(plan),
    }
