"""Carry a plan out on a fleet: submit, poll to the end, bring every record home.

Invariant: what one share brought to an end is home whatever became of the others; Ctrl-C asks all
of them to stop in order, and waits until they have.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from kit.fleet.address import spoken
from kit.fleet.protocol import Fleet
from kit.run.campaign import Outcome, Share
from kit.run.reproduce import Reproduced
from records.errors import HostsFailedError, KitError


@dataclass(frozen=True, slots=True)
class Shared:
    """What became of each share: records that are home, and shares that did not come to an end."""

    done: tuple[Reproduced, ...]
    left: tuple[Outcome, ...]


def carry_out(fleet: Fleet, say: Callable[[str], None]) -> Shared:
    """The whole of it."""
    done, left = [], []
    for outcome in until_ended(fleet, say):
        if not outcome.has_ended or not outcome.run_id:
            left.append(outcome)
            continue
        try:
            done.append(fleet.fetch(outcome))
        except KitError as error:
            tell(outcome.share, error, say)
            left.append(failed(outcome.share, error))
    return Shared(tuple(done), tuple(left))


def until_ended(fleet: Fleet, say: Callable[[str], None]) -> tuple[Outcome, ...]:
    """Submit, and poll until every share has ended."""
    outcomes: list[Outcome] = []
    fleet.submit()
    while True:
        try:
            outcomes += fleet.poll()
            if not fleet.is_under_way():
                return tuple(sorted(outcomes, key=lambda outcome: outcome.share.blocks))
            time.sleep(fleet.period_s)
        except KeyboardInterrupt:
            say("interrupted: asking every harness to mark its boot and stop")
            fleet.cancel()


def require_all(shared: Shared, plan_name: str) -> None:
    """HostsFailedError where a share did not come to its end."""
    if shared.left:
        total = len(shared.done) + len(shared.left)
        causes = "".join(
            f"\n  - {o.share.host} (blocks {o.share.listed}): "
            f"{o.last_line.removeprefix('error: ') or f'ended with status {o.status}'}"
            for o in shared.left
        )
        first = shared.left[0]
        where = spoken(first.share.host)
        if first.run_id:
            command = f"kit reproduce --run {first.run_id} {where}"
        else:
            named = f"--plan {plan_name} --blocks {first.share.listed}"
            command = f"kit reproduce {named} {where}  (or another host)"
        raise HostsFailedError(
            f"{len(shared.left)} of {total} hosts did not bring their blocks to an end:{causes}",
            f"{command}, and so on for each",
        )


def tell(share: Share, error: KitError, say: Callable[[str], None]) -> None:
    """Say what stopped a share."""
    say(f"[{share.label}] error: {error.message}\n  try: {error.remedy}")


def failed(share: Share, error: KitError, run_id: str = "") -> Outcome:
    """The outcome of a share that an error stopped. `run_id`: what can be gone on with."""
    return Outcome(share, error.exit_code, f"error: {error.message}", run_id)
