"""`kit reproduce` on several hosts: meet them, share the blocks out, bring every record home.

Invariant: what one host brought to an end is home and in the tables whatever became of the others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from kit.campaign import Outcome, Share, carry_out, deal
from kit.follow import Ending
from kit.home import Home
from kit.host import Host
from kit.launch import Say, read_job
from kit.reproduce import Reproduced, bring_home
from records.errors import HostsFailedError, KitError
from records.plan import Plan


@dataclass(frozen=True, slots=True)
class Shared:
    """What became of each host: records that are home, and hosts that did not come to an end."""

    done: tuple[Reproduced, ...]
    left: tuple[Outcome, ...]


def reproduce_on(
    home: Home,
    hosts: Sequence[Host],
    plan: Plan,
    plan_name: str,
    say: Say,
    *,
    new: bool = False,
    blocks: tuple[int, ...] = (),
) -> Shared:
    """Carry the plan out on all hosts at once. `plan_name`: as a command line names it."""
    shares = deal(blocks or range(1, plan.blocks + 1), [host.name for host in hosts])
    home.salt()  # made once, before several processes would each make one
    by_name = {host.name: host for host in hosts}
    met, left = [], []
    for share in shares:
        try:  # here, where a person can be asked about a host key
            by_name[share.host].home(home)
            met.append(share)
        except KitError as error:
            say(f"[{share.host}] error: {error.message}\n  try: {error.remedy}")
            left.append(Outcome(share, error.exit_code, f"error: {error.message}"))
    for share in met:
        say(f"[{share.host}] blocks {_listed(share)} of {plan.blocks}")
    done = []
    for outcome in carry_out(met, lambda share: _argv(share, plan_name, new=new), say):
        if not outcome.has_ended or not outcome.run_id:
            left.append(outcome)
            continue
        try:
            done.append(_brought(home, by_name[outcome.share.host], outcome, say))
        except KitError as error:
            say(f"[{outcome.share.host}] error: {error.message}\n  try: {error.remedy}")
            left.append(Outcome(outcome.share, error.exit_code, f"error: {error.message}"))
    return Shared(tuple(done), tuple(left))


def require_all(shared: Shared, plan_name: str) -> None:
    """HostsFailedError where a host did not finish."""
    if shared.left:
        total = len(shared.done) + len(shared.left)
        causes = "".join(
            f"\n  - {o.share.host} (blocks {_listed(o.share)}): "
            f"{o.last_line.removeprefix('error: ') or f'ended with status {o.status}'}"
            for o in shared.left
        )
        share = shared.left[0].share
        raise HostsFailedError(
            f"{len(shared.left)} of {total} hosts did not bring their blocks to an end:{causes}",
            f"kit reproduce --plan {plan_name} --blocks {_listed(share)} --host {share.host}  "
            "(or another host), and so on for each",
        )


def _brought(home: Home, host: Host, outcome: Outcome, say: Say) -> Reproduced:
    job = read_job(host.mirror(home).job(outcome.run_id))
    fetched = bring_home(home, host, job, say)
    ending = Ending(outcome.run_id, outcome.completed, outcome.failed)
    return Reproduced(ending, fetched, home.tables_for(job))


def _argv(share: Share, plan_name: str, *, new: bool) -> list[str]:
    argv = [sys.executable, "-m", "kit.main", "run", "--plan", plan_name, "--json"]
    return [*argv, "--host", share.host, "--blocks", _listed(share), *(["--new"] if new else [])]


def _listed(share: Share) -> str:
    return ",".join(str(block) for block in share.blocks)
