"""Several hosts as a fleet: the blocks are dealt out, each host carries out its own run.

Invariant: each host is worked on by a process of its own, so that none can stop another; what a
host did not finish is named with its blocks, for the same host or another to take over.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kit.fleet.carry_out import failed, tell
from kit.home import Home
from kit.hosts.host import Host
from kit.run.campaign import Outcome, Share, Worker, deal
from kit.run.follow import Ending
from kit.run.launch import Say, read_job
from kit.run.reproduce import Reproduced, bring_home
from records.errors import KitError
from records.plan import Plan


class SshFleet:
    """These hosts. `plan_name`: as a command line names the plan."""

    period_s = 0.2

    def __init__(
        self,
        home: Home,
        hosts: Sequence[Host],
        plan: Plan,
        plan_name: str,
        say: Say,
        *,
        new: bool = False,
        blocks: tuple[int, ...] = (),
    ) -> None:
        self._home = home
        self._hosts = {host.name: host for host in hosts}
        self._blocks = plan.blocks
        self._argv = ("run", "--plan", plan_name, "--json", *(("--new",) if new else ()))
        self._say = say
        self._shares = deal(blocks or range(1, plan.blocks + 1), list(self._hosts))
        self._workers: list[Worker] = []
        self._unmet: list[Outcome] = []

    @property
    def run_ids(self) -> tuple[str, ...]:
        """None: each host's process knows its own."""
        return ()

    def submit(self) -> None:
        """Meet every host, then start a process for each that was met."""
        self._home.salt()  # made once, before several processes would each make one
        met = [share for share in self._shares if self._meet(share)]
        for share in met:
            self._say(f"[{share.host}] blocks {share.listed} of {self._blocks}")
        self._workers = [Worker(share, self._words(share), self._say) for share in met]

    def poll(self) -> tuple[Outcome, ...]:
        """Hosts that were not met, and processes that have ended."""
        ended = [worker for worker in self._workers if not worker.is_alive()]
        self._workers = [worker for worker in self._workers if worker not in ended]
        unmet, self._unmet = self._unmet, []
        return (*unmet, *(worker.outcome() for worker in ended))

    def is_under_way(self) -> bool:
        """Whether a process lives."""
        return bool(self._workers)

    def cancel(self) -> None:
        """Ctrl-C for every process: each stops its harness in order."""
        for worker in self._workers:
            worker.interrupt()

    def fetch(self, outcome: Outcome) -> Reproduced:
        """From the host that made it."""
        host = self._hosts[outcome.share.host]
        job = read_job(host.mirror(self._home).job(outcome.run_id))
        fetched = bring_home(self._home, host, job, self._say)
        ending = Ending(outcome.run_id, outcome.completed, outcome.failed)
        return Reproduced(ending, fetched, self._home.tables_for(job))

    def _meet(self, share: Share) -> bool:
        try:  # here, where a person can be asked about a host key
            self._hosts[share.host].home(self._home)
        except KitError as error:
            tell(share, error, self._say)
            self._unmet.append(failed(share, error))
            return False
        return True

    def _words(self, share: Share) -> list[str]:
        words = (sys.executable, "-m", "kit.main", *self._argv)
        return [*words, "--host", share.host, "--blocks", share.listed]
