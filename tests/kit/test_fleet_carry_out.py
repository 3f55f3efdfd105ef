"""Whatever kind a fleet is: what ended is fetched, what did not is named, Ctrl-C reaches all."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kit.fleet.carry_out import carry_out, require_all
from kit.run.campaign import Outcome, Share
from kit.run.fetch import Fetched
from kit.run.follow import Ending
from kit.run.reproduce import Reproduced
from records.errors import ChainError, HostsFailedError

ONE, TWO, THREE = (Share(f"h{n}", (n,)) for n in (1, 2, 3))


@dataclass
class Scripted:
    """A fleet that tells these outcomes, a list a poll."""

    polls: list[list[Outcome]]
    broken: str = ""
    interrupt_at: int = -1
    calls: list[str] = field(default_factory=list)
    period_s: float = 0.0
    run_ids: tuple[str, ...] = ()

    def submit(self) -> None:
        self.calls.append("submit")

    def poll(self) -> tuple[Outcome, ...]:
        if self.interrupt_at == 0:
            self.interrupt_at = -1
            raise KeyboardInterrupt
        self.interrupt_at -= 1
        return tuple(self.polls.pop(0))

    def is_under_way(self) -> bool:
        return bool(self.polls)

    def cancel(self) -> None:
        self.calls.append("cancel")

    def fetch(self, outcome: Outcome) -> Reproduced:
        self.calls.append(f"fetch {outcome.run_id}")
        if outcome.run_id == self.broken:
            raise ChainError("it does not verify", "kit audit")
        run = outcome.run_id
        return Reproduced(Ending(run, 1, 0), Fetched(run, Path(run), True, 1, True), Path("t"))


def test_what_ended_is_home_and_what_did_not_is_named() -> None:
    lost = Outcome(TWO, 25, "error: the line was lost")
    fleet = Scripted([[], [Outcome(THREE, 51, "", "r3")], [lost], [Outcome(ONE, 0, "", "r1")]])
    shared = carry_out(fleet, lambda _: None)
    assert [one.ending.run_id for one in shared.done] == ["r1", "r3"]
    assert shared.left == (lost,)
    with pytest.raises(HostsFailedError) as failure:
        require_all(shared, "p")
    assert "1 of 3 hosts" in failure.value.message
    assert "h2 (blocks 2): the line was lost" in failure.value.message
    assert failure.value.remedy.startswith("kit reproduce --plan p --blocks 2 --host h2 ")


def test_records_that_do_not_verify_cost_only_themselves() -> None:
    said: list[str] = []
    ended = [Outcome(ONE, 0, "", "r1"), Outcome(TWO, 0, "", "r2")]
    shared = carry_out(Scripted([ended], broken="r1"), said.append)
    assert [one.ending.run_id for one in shared.done] == ["r2"]
    assert [one.status for one in shared.left] == [ChainError.exit_code]
    assert said == ["[h1] error: it does not verify\n  try: kit audit"]


def test_ctrl_c_asks_all_to_stop_and_waits() -> None:
    fleet = Scripted([[], [Outcome(ONE, 52, "")]], interrupt_at=1)
    shared = carry_out(fleet, lambda _: None)
    assert fleet.calls == ["submit", "cancel"]
    assert [one.status for one in shared.left] == [52]
