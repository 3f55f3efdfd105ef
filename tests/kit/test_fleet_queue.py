"""A fleet behind a queue: what Ctrl-C reaches, and what is said when it comes at a bad moment."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kit.fleet.queue_fleet import QueueFleet, Wanted
from kit.home import Home
from kit.hosts.local import LocalHost
from kit.planning.plan_file import load_plan
from records.digest import Digest
from records.errors import InterruptedRunError, SchedulerError
from records.job import EngineOnHost, Job

DEMO = load_plan(Path(__file__).parents[2] / "kit" / "plans" / "demo.toml")


@dataclass
class Task:
    """A task of a queue whose controller may be away."""

    reason: str = ""
    away: bool = False
    status: int | None = None
    ended_as: str = ""
    asked: int = 0
    looks: int = 0
    pid: int = 1

    def exit_status(self) -> int | None:
        self.looks += 1
        if self.away:
            raise SchedulerError("scontrol: Unable to contact slurm controller", "scontrol ping")
        return self.status

    @property
    def waits_for(self) -> str:
        return self.reason

    def interrupt(self) -> None:
        self.asked += 1
        if self.away:
            raise SchedulerError("scontrol: Unable to contact slurm controller", "scontrol ping")


@dataclass
class Queue:
    """Takes in whatever it is given, as these tasks."""

    tasks: Sequence[Task]
    period_s: float = 0.0
    interrupted: bool = False
    taken: list[Wanted] = field(default_factory=list)

    def turn(self) -> AbstractContextManager[None]:
        return nullcontext()

    def submit(self, wanted: Sequence[Wanted]) -> list[tuple[Job, Task]]:
        self.taken += wanted
        if self.interrupted:
            raise KeyboardInterrupt
        return [(job(one), task) for one, task in zip(wanted, self.tasks, strict=True)]


def job(one: Wanted) -> Job:
    engine = EngineOnHost("reference", ("python3",), (), {}, "", Digest.of(b""))
    return Job(one.run_id, DEMO, engine, {}, "/r", "/s", "salt", blocks=(one.block,))


def fleet(place: Path, queue: Queue) -> tuple[QueueFleet, list[str]]:
    said: list[str] = []
    home = Home(place, place, place, place)
    return QueueFleet(home, LocalHost(), DEMO, queue, said.append), said


def test_every_task_is_asked_to_stop_though_the_first_cannot_be_told(tmp_path: Path) -> None:
    tasks = (Task(away=True), Task())
    queued, _ = fleet(tmp_path, Queue(tasks))
    queued.submit()
    with pytest.raises(SchedulerError, match="1 of 2 tasks") as refusal:
        queued.cancel()
    assert [task.asked for task in tasks] == [1, 1]
    assert "kit stop --all" in refusal.value.remedy


def test_an_interruption_while_submitting_says_what_may_go_on(tmp_path: Path) -> None:
    queued, said = fleet(tmp_path, Queue((), interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        queued.submit()
    assert "kit stop --all" in said[-1]


def test_why_blocks_wait_is_said_once_a_reason(tmp_path: Path) -> None:
    tasks = (Task(reason="Priority"), Task(reason="Priority"))
    queued, said = fleet(tmp_path, Queue(tasks))
    queued.submit()
    assert queued.poll() == queued.poll() == ()
    assert [line for line in said if "in the queue" in line] == [
        "in the queue: block 1, 2: Priority (Ctrl-C takes out what waits)"
    ]
    tasks[0].reason = "Resources"
    queued.poll()
    assert said[-1].startswith("in the queue: block 1: Resources")


def test_a_task_that_its_scheduler_ended_is_told_with_its_word(tmp_path: Path) -> None:
    task = Task(status=InterruptedRunError.exit_code, ended_as="OUT_OF_MEMORY")
    queued, _ = fleet(tmp_path, Queue((task, Task())))
    queued.submit()
    assert queued.poll() == ()  # looked at once more: it might be queued again
    (outcome,) = queued.poll()
    assert outcome.last_line.endswith("was interrupted (OUT_OF_MEMORY), no boot begun")


def test_a_controller_that_is_away_is_asked_for_one_task_a_poll(tmp_path: Path) -> None:
    tasks = (Task(away=True), Task(away=True))
    queued, said = fleet(tmp_path, Queue(tasks))
    queued.submit()
    assert queued.poll() == queued.poll() == ()
    assert [task.looks for task in tasks] == [2, 0]
    assert [line for line in said if "asking again" in line] == [
        "scontrol: Unable to contact slurm controller; its jobs go on, asking again"
    ]
