"""A plan told to a person or a machine: order, windows, expected duration."""

from __future__ import annotations

from typing import Any

from records.decode import to_object
from records.load import Window
from records.plan import Plan, boot_order


def expected_s(plan: Plan) -> int:
    """Seconds from the first boot to the seal, by the plan's own estimates."""
    estimates = plan.estimates
    boots = len(boot_order(plan))
    primes = sum(arm.cache == "warm" for arm in plan.arms)
    per_boot = estimates.boot_s + estimates.window_s * len(plan.windows)
    return boots * per_boot + primes * estimates.first_boot_s


def window_text(window: Window) -> str:
    """One line on a window: load, budget, endpoint, prompts, output length."""
    load = window.load
    rate = f" at {load.rate_millihertz / 1000:g}/s" if load.rate_millihertz else ""
    limits = []
    if load.requests:
        limits.append(f"{load.requests} requests")
    if load.duration_ms:
        limits.append(f"{load.duration_ms / 1000:g} s")
    return (
        f"{load.kind}, concurrency {load.concurrency}{rate}, {' or '.join(limits)}; "
        f"{window.endpoint}, {window.prompts.count} {window.prompts.source} prompts, "
        f"{window.sampling.min_tokens}-{window.sampling.max_tokens} tokens out"
    )


def overview(plan: Plan) -> dict[str, Any]:
    """Everything `kit plan show` prints, and the plan itself."""
    return {
        "digest": str(plan.digest),
        "order": [to_object(boot) for boot in boot_order(plan)],
        "expected_s": expected_s(plan),
        "plan": to_object(plan),
    }
