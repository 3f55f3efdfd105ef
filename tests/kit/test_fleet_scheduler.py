"""Slurm's commands on a login node: what is asked, how often, and what a refusal becomes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kit.engine.hub_token import TOKEN_NAMES
from kit.hosts.host import Done
from kit.hosts.local import LocalHost
from kit.slurm.cluster_host import SlurmHost, Task
from kit.slurm.scheduler import Scheduler
from kit.slurm.site import SlurmSite
from records.errors import SchedulerError

SHOWN = "JobId=2 ArrayJobId=1 ArrayTaskId=1 JobState={} Reason=None ExitCode=0:0\n"


@dataclass
class Login(LocalHost):
    """A login node that answers from a list, and notes what it was asked."""

    answers: list[Done]
    asked: list[tuple[str, ...]] = field(default_factory=list)
    name: str = "login"

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: int = 60) -> Done:
        self.asked.append(tuple(argv))
        return self.answers.pop(0)


def test_a_job_is_submitted_without_a_token() -> None:
    login = Login([Done(0, "17;cluster\n", "")])
    assert Scheduler(login, 10).submit(("sbatch", "--parsable"), b"#!/bin/sh\n") == "17"
    (words,) = login.asked
    assert words[0] == "env"
    assert {("-u", name) for name in TOKEN_NAMES} <= set(itertools.pairwise(words))
    assert words[-2:] == ("sbatch", "--parsable")


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (Done(1, "", "sbatch: error: invalid partition specified: gpu\n"), "invalid partition"),
        (Done(127, "", "sbatch: not found"), "no login node of a Slurm cluster"),
        (Done(0, "Submitted\n", ""), "Submitted"),
        (Done(1, "", "sbatch: unrecognized option '--x'\nTry \"sbatch --help\"\n"), "unrecognized"),
    ],
)
def test_a_refusal_is_told_in_slurms_words(done: Done, said: str) -> None:
    with pytest.raises(SchedulerError, match=said):
        Scheduler(Login([done]), 10).submit(("sbatch",), b"")


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("sbatch: error: invalid partition specified: gpu", "sinfo -s"),
        (
            "sbatch: error: Invalid account or account/partition combination specified",
            "account and qos in slurm.toml",
        ),
        ("sbatch: error: Invalid generic resource (gres) specification", "gres ="),
        ("sbatch: error: Batch job submission failed: Invalid feature specification", "constraint"),
        ("sbatch: error: Batch job submission failed: Invalid job array specification", "--blocks"),
        (
            "sbatch: error: Requested time limit is invalid (missing or exceeds some limit)",
            "time_factor",
        ),
        (
            "sbatch: error: Job violates accounting/QOS policy (job submit limit, user's size …)",
            "--blocks 1,2",
        ),
        ("sbatch: error: Requested node configuration is not available", "%G"),
        (
            "sbatch: error: Unable to contact slurm controller (connect failure)",
            "scontrol ping",
        ),
    ],
)
def test_a_refusal_names_what_to_change(said: str, remedy: str) -> None:
    with pytest.raises(SchedulerError) as refusal:
        Scheduler(Login([Done(1, "", f"{said}\n")]), 10).submit(("sbatch",), b"")
    assert remedy in refusal.value.remedy


def test_what_a_sites_wrapper_prints_before_the_number_is_passed_over() -> None:
    login = Login([Done(0, "Your 30 days quota: 40 % used\n17\n", "")])
    assert Scheduler(login, 10).submit(("sbatch", "--parsable"), b"") == "17"


def test_an_array_is_found_by_its_name_and_asked_for_once() -> None:
    login = Login([Done(0, "kit-1 17\nkit-1 17\n", ""), Done(0, "", "")])
    scheduler = Scheduler(login, 10)
    assert [scheduler.number("kit-1"), scheduler.number("kit-1"), scheduler.number("kit-2")] == [
        "17", "17", "",
    ]  # fmt: skip
    assert "--name=kit-1" in login.asked[0]


def test_a_users_own_view_of_the_queue_hides_no_job_of_the_kits() -> None:
    # squeue(1): without --all it shows no hidden partition, and its environment filters.
    login = Login([Done(0, "kit-1 17\n", "")])
    assert Scheduler(login, 10).number("kit-1") == "17"
    (words,) = login.asked
    assert "--all" in words
    assert {("-u", "SQUEUE_PARTITION"), ("-u", "SQUEUE_USERS")} <= set(itertools.pairwise(words))


def test_of_a_job_submitted_twice_by_a_line_that_dropped_the_first_stays() -> None:
    login = Login([Done(0, "40 jobs\nkit-1 18\nkit-1 17\nkit-1 18\n", ""), Done(0, "", "")])
    assert Scheduler(login, 10).number("kit-1") == "17"
    assert login.asked[1:] == [("scancel", "18")]


def test_a_machine_that_is_no_login_node_is_told_before_anything_is_done() -> None:
    with pytest.raises(SchedulerError, match="no login node") as refusal:
        Scheduler(Login([Done(127, "", "sbatch: not found")]), 10).require()
    assert "--fleet slurm --host" in refusal.value.remedy
    Scheduler(Login([Done(0, "slurm 22.05.8\n", "")]), 10).require()


def test_the_controller_is_asked_no_more_often_than_it_is_to_be() -> None:
    login = Login([Done(0, SHOWN.format("RUNNING"), "")])
    scheduler = Scheduler(login, 1000)
    assert all(scheduler.task("1_1") is not None for _ in range(5))
    assert len(login.asked) == 1


def test_an_array_that_slurm_forgot_is_not_asked_for_with_every_task() -> None:
    login = Login([Done(1, "", "slurm_load_jobs error: Invalid job id specified\n")])
    scheduler = Scheduler(login, 1000)
    assert [scheduler.task(f"1_{number}") for number in range(3)] == [None] * 3


def test_a_job_that_slurm_forgot_and_a_controller_that_is_away() -> None:
    gone = Done(1, "", "slurm_load_jobs error: Invalid job id specified\n")
    assert Scheduler(Login([gone]), 10).task("1_1") is None
    away = Done(1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect)\n")
    with pytest.raises(SchedulerError, match="Unable to contact"):
        Scheduler(Login([away]), 10).task("1_1")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("RUNNING", ("scancel", "--batch", "--signal=TERM", "1_1")),
        ("PENDING", ("scancel", "1_1")),
        ("COMPLETED", None),
    ],
)
def test_a_task_is_ended_as_its_state_wants(state: str, words: tuple[str, ...] | None) -> None:
    login = Login([Done(0, SHOWN.format(state), ""), Done(0, "", "")])
    Scheduler(login, 10).end("1_1")
    assert (login.asked[1:] or [None]) == [words]


@pytest.mark.parametrize(("state", "said"), [("PENDING", "None"), ("RUNNING", "")])
def test_a_task_says_why_it_waits(state: str, said: str) -> None:
    login = Login([Done(0, SHOWN.format(state), "")])
    host = SlurmHost(login, SlurmSite(), "slurm/login")
    assert Task(host, "1_1", Path("/none")).waits_for == said


def test_a_note_names_the_array_so_that_no_number_of_another_job_is_taken_for_it() -> None:
    class Noted(Login):
        def read(self, path: Path, offset: int = 0) -> bytes:
            return b"kit-0a1b2c3d_1\n"

    found = Noted([Done(0, "kit-0a1b2c3d 1\n", ""), Done(0, SHOWN.format("RUNNING"), "")])
    task = SlurmHost(found, SlurmSite(), "slurm/login").attach(Path("/none.pid"), "")
    assert isinstance(task, Task)
    assert task.name == "1_1"
    unknown = Noted([Done(0, "", "")])
    assert SlurmHost(unknown, SlurmSite(), "slurm/login").attach(Path("/none.pid"), "") is None


@pytest.mark.parametrize("note", [b"", b"\n", b"kit-1", b"\xff\xfe_1\n", b"12_x\n"])
def test_a_note_that_was_damaged_names_no_task(note: bytes) -> None:
    class Noted(Login):
        def read(self, path: Path, offset: int = 0) -> bytes:
            return note

    login = Noted([Done(0, "kit-0a1b2c3d 1\n", ""), Done(0, SHOWN.format("RUNNING"), "")])
    assert SlurmHost(login, SlurmSite(), "slurm/login").attach(Path("/none.pid"), "") is None


def test_a_task_taken_out_before_it_had_a_node_is_no_task_any_more() -> None:
    # Slurm 22.05 gives it the number NO_VAL.
    line = SHOWN.format("CANCELLED").replace("TaskId=1", "TaskId=4294967294")
    host = SlurmHost(Login([Done(0, line, "")]), SlurmSite(), "slurm/login")
    assert Task(host, "1_1", Path("/none")).exit_status() == 0
