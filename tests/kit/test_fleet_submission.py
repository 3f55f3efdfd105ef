"""Two kits submit one plan to one cluster at once: real processes, stand-in commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from called_kit import tiny_plan
from ssh_kit import SshKit
from sshd import ROOT

from kit.fleet.sole_submitter import sole_submitter
from records.errors import SchedulerError

# What is submitted is kept as one file: a line for each array, by whose number it is known.
SLURM = {
    # Says its version once two kits have asked for it, or after two seconds.
    "sbatch": """\
        case "$*" in *--version*)
            echo >> asked
            for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
                [ "$(wc -l < asked)" -ge 2 ] && break
                sleep 0.1
            done
            echo slurm 22.05.8
            exit;;
        esac
        rm refuse 2> /dev/null && sleep 0.5 && exit 1
        for word; do
            case "$word" in --job-name=*) echo "${word#*=}" >> arrays;; esac
        done
        wc -l < arrays
        """,
    "squeue": """\
        for word; do
            case "$word" in --name=*) name="${word#*=}";; esac
        done
        grep -n "^$name$" arrays | while IFS=: read -r number _; do echo "$name $number"; done
        """,
    "scontrol": """\
        for number; do :; done
        echo "JobId=9 ArrayJobId=$number ArrayTaskId=1-9 JobState=PENDING Reason=Priority" \\
            "ExitCode=0:0"
        """,
}


@pytest.fixture
def kit(tmp_path: Path) -> SshKit:
    """A user on a login node; `tmp_path`/tools/arrays holds what was submitted there."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in SLURM.items():
        (tools / name).write_text(f"#!/bin/sh\ncd {tools} || exit\n{text}")
        (tools / name).chmod(0o755)
    kit = SshKit(tmp_path / "login", tmp_path, tiny_plan(blocks=2))
    kit.extra = {"PATH": f"{tools}:{os.environ['PATH']}"}
    return kit


def test_who_waits_is_told_for_whom(tmp_path: Path) -> None:
    lock = tmp_path / "plan.lock"
    waits = "import sys;from pathlib import Path;from kit.fleet.sole_submitter import *\n"
    waits += "with sole_submitter(Path(sys.argv[1]), lambda line: print(line, flush=True)): pass"
    with sole_submitter(lock, print):
        other = subprocess.Popen(
            [sys.executable, "-c", waits, lock], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert other.stdout is not None
        assert other.stdout.readline().startswith(f"process {os.getpid()} on ")
        assert other.poll() is None
    assert other.wait(timeout=10) == 0
    other.stdout.close()


def two_at_once(kit: SshKit) -> tuple[list[subprocess.Popen[str]], list[tuple[str, str]]]:
    """Two processes of one user, and what each printed and said."""
    words = ("run", "--plan", str(kit.plan), "--fleet", "slurm", "--detach", "--json")
    both = [kit.start(*words) for _ in range(2)]
    return both, [process.communicate(timeout=60) for process in both]


def arrays(tmp_path: Path) -> list[str]:
    return (tmp_path / "tools" / "arrays").read_text().splitlines()


def test_two_kits_at_once_submit_a_block_once(kit: SshKit, tmp_path: Path) -> None:
    both, told = two_at_once(kit)
    assert [process.returncode for process in both] == [0, 0], told
    assert len(arrays(tmp_path)) == 1
    first, second = (json.loads(out) for out, _ in told)
    assert first == second
    (waited,) = (shown for _, shown in told if "submits this plan just now" in shown)
    assert waited.count("is under way: attaching") == 2


def test_a_kit_that_waits_submits_what_the_other_could_not(kit: SshKit, tmp_path: Path) -> None:
    (tmp_path / "tools" / "refuse").touch()
    both, told = two_at_once(kit)
    assert sorted(process.returncode for process in both) == [0, SchedulerError.exit_code], told
    assert len(arrays(tmp_path)) == 1
    assert len(list((kit.home / "jobs").glob("*.json"))) == 2  # the runs that the other had begun
