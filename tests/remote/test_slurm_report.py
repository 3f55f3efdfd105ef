"""Slurm's answers as figures: captures of 22.05.8, accounts in the form of sacct(1)."""

from __future__ import annotations

import pytest

from records.errors import FormatError
from remote.slurm.report import SACCT_FIELDS, figures, parse_sacct, parse_show_job, seconds

# scontrol show job -o, of a running task on a cluster of one-processor nodes.
SHOWN = (
    "JobId=2 ArrayJobId=1 ArrayTaskId=1 JobName=job.sh UserId=root(0) GroupId=root(0) "
    "MCS_label=N/A Priority=4294901759 Nice=0 Account=(null) QOS=(null) JobState=RUNNING "
    "Reason=None Dependency=(null) Requeue=1 Restarts=2 BatchFlag=2 Reboot=0 ExitCode=0:0 "
    "RunTime=00:00:08 TimeLimit=00:02:00 TimeMin=N/A Scheduler=Main Partition=main "
    "AllocNode:Sid=localhost:14033 ReqNodeList=(null) ExcNodeList=(null) NodeList=node1 "
    "BatchHost=node1 NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:* "
    "TRES=cpu=1,node=1,billing=1 Socks/Node=* Features=(null) OverSubscribe=NO "
    "Command=/tmp/a b/JobName=x WorkDir=/tmp StdOut=/tmp/o-1_1.out Power= "
)


def test_a_running_task() -> None:
    job = parse_show_job(SHOWN)
    assert job["RunTime"] == "00:00:08"
    assert job["TRES"] == "cpu=1,node=1,billing=1"
    assert job["CPUs/Task"] == "1"
    assert job["Power"] == ""


def test_figures_name_nobody() -> None:
    kept = figures(parse_show_job(SHOWN))
    assert kept["Restarts"] == "2"
    text = str(kept)
    assert not any(
        word in text for word in ("node1", "root", "main", "localhost", "/tmp", "job.sh")
    )


def test_another_answer() -> None:
    with pytest.raises(FormatError, match="no JobId"):
        parse_show_job("slurm_load_jobs error: Invalid job id specified")


def test_accounts_by_step() -> None:
    row = "|".join(["COMPLETED", "61", "00:59.1", "2048K", "1M", "2M", "", "cpu=1", "cpu=1", "16"])
    steps = parse_sacct(f"12_3|{row}\n12_3.batch|{row}\n12_3.extern|{row}\n")
    assert [step["step"] for step in steps] == ["", ".batch", ".extern"]
    assert steps[0]["MaxRSS"] == "2048K"
    assert list(steps[0]) == ["step", *SACCT_FIELDS]
    with pytest.raises(FormatError):
        parse_sacct("12_3|COMPLETED\n")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("00:16:00", 960),
        ("16:00", 960),
        ("1-02:03:04", 93784),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("", None),
    ],
)
def test_times(text: str, want: int | None) -> None:
    assert seconds(text) == want
