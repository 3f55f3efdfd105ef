"""Any plan, rehearsed: the same arms, blocks, windows and caches against the reference server.

Invariant: a rehearsal is another plan, by name and digest, and its run is synthetic: nothing of it
can be taken for a measurement. Its schedules come from the arms' names, so that arms differ and no
one reads a forecast into them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from decimal import Decimal

from kit.engine.setup import REFERENCE
from records.load import Window
from records.plan import Arm, Bounds, Calibration, Engine, Estimates, Plan, Requirements, Warmup

_MOST_TOKENS = 24
_LONGEST_ID = 40
_MARK = "-rehearsal"


def rehearsal(plan: Plan) -> Plan:
    """The plan with the reference server in place of its engine, short enough to be tried."""
    return replace(
        plan,
        id=plan.id[: _LONGEST_ID - len(_MARK)] + _MARK,
        title=f"Rehearsal (synthetic: measures nothing): {plan.title}",
        engine=Engine(REFERENCE, "1", ""),
        requirements=Requirements(300, 100, (), Decimal(0), 0),
        warmup=Warmup(1, 2, 60),
        calibration=Calibration(10, 1, 30),
        # As in kit/plans/demo.toml: the server shares the processors with the client.
        bounds=Bounds(5_000_000, 50_000_000, 900_000, 200_000, 500_000, 5_000_000),
        estimates=Estimates(4, 4, 2),
        arms=tuple(_arm(arm) for arm in plan.arms),
        windows=tuple(_window(window) for window in plan.windows),
    )


def shortened(plan: Plan, rehearsed: Plan) -> str:
    """On one line: what the rehearsal of a plan does less than the plan."""
    tokens = max(window.sampling.max_tokens for window in plan.windows)
    fewer = max(window.sampling.max_tokens for window in rehearsed.windows)
    sent, planned = _requests(rehearsed), _requests(plan)
    requests = f"{sent} requests a boot where the plan sends {planned}, " if sent < planned else ""
    return (
        f"rehearsal, synthetic, measures nothing: {requests}"
        f"at most {fewer} tokens a request where it asks for up to {tokens}"
    )


def _requests(plan: Plan) -> int:
    """Of one boot; windows that end by time alone have no number of them."""
    return sum(window.load.requests for window in plan.windows)


def _arm(arm: Arm) -> Arm:
    """The arm's name, factors, blocks and cache, with a schedule in place of its options."""
    drafted = 0
    if arm.speculative_config:
        drafted = int(json.loads(arm.speculative_config).get("num_speculative_tokens", 4))
    varied = hashlib.sha256(arm.id.encode()).digest()[0] % 8
    gap_ms = 20 + varied + drafted
    tokens = f"accept:{drafted}:{1 + 0.6 * min(drafted, 4):.1f}" if drafted else "1"
    schedule = ("--ttft", "constant:20ms", "--gap", f"uniform:{gap_ms - 5}ms:{gap_ms + 5}ms")
    args = (*schedule, "--tokens", tokens, "--no-prefix-caching")
    return replace(arm, args=args, env={}, first_boot_s=0)


def _window(window: Window) -> Window:
    tokens = min(window.sampling.max_tokens, _MOST_TOKENS)
    least = min(window.sampling.min_tokens, tokens)
    load = window.load
    requests = min(load.requests, 2 * load.concurrency) if load.requests else 0
    return replace(
        window,
        sampling=replace(window.sampling, max_tokens=tokens, min_tokens=least),
        load=replace(load, requests=requests),
    )
