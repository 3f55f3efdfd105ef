"""Stop signals never land inside a shield, and nothing loses one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stop_signals import settled

from records.errors import InterruptedRunError
from remote.interruption import Interruption

ROOT = Path(__file__).parents[2]


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    with settled(Interruption()) as installed:
        yield installed


def test_a_signal_outside_a_shield_raises_at_once(interruption):
    with pytest.raises(InterruptedRunError, match="SIGTERM"):
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_inside_nested_shields_waits_for_the_outermost(interruption):
    done = []
    with pytest.raises(InterruptedRunError, match="SIGINT"), interruption.shield():
        with interruption.shield():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]


def test_a_shield_without_a_signal_raises_nothing(interruption):
    with interruption.shield():
        pass


def test_clearing_up_is_not_interrupted_again(interruption):
    """What runs because of the exception runs to its end, whatever comes meanwhile."""
    done = []
    with pytest.raises(InterruptedRunError, match="SIGTERM"):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.6)
            done.append("cleared up")
    assert done == ["cleared up"]


def test_after_its_end_a_signal_changes_nothing(interruption):
    interruption.settle()
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_that_a_finaliser_swallowed_is_raised_again(interruption):
    class Finalised:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(InterruptedRunError, match="SIGTERM"):
        Finalised()
        time.sleep(30)


def test_the_reason_of_somebody_else_is_told(tmp_path):
    reason = "preempted: gone at noon"
    with (
        settled(Interruption("RUN", lambda: reason)),
        pytest.raises(InterruptedRunError, match=f"{reason}; stopped by SIGTERM"),
    ):
        os.kill(os.getpid(), signal.SIGTERM)


# A hook of os.fork, as logging has some, is where an exception of a handler was lost for good.
FORK = """
import os, signal, sys
from pathlib import Path
from records.errors import InterruptedRunError
from records.load import Load
from remote.client.window import Target, measure
from remote.interruption import Interruption

def hook():
    os.kill(os.getpid(), signal.SIGTERM)

os.register_at_fork(**{sys.argv[1]: hook})
Interruption().install()
try:
    measure(Target("/x", "127.0.0.1", 9), None, Load("closed", 1, requests=1), seed=0, sink=print,
            cpus=None, spill_dir=Path(sys.argv[2]))
except InterruptedRunError:
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        print("raised, and no worker is left")
"""


@pytest.mark.parametrize("when", ["before", "after_in_parent"])
def test_a_signal_that_meets_the_fork_of_a_worker_is_not_lost(tmp_path: Path, when: str) -> None:
    argv = [sys.executable, "-c", FORK, when, str(tmp_path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "raised, and no worker is left\n", done.stderr
    assert "ignored" not in done.stderr


def test_a_worker_that_is_told_to_stop_as_it_is_born_never_runs_its_parents_code(
    tmp_path: Path,
) -> None:
    """A host that shuts down signals every process there is."""
    argv = [sys.executable, "-c", FORK, "after_in_child", str(tmp_path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert "ClientCrashError" in done.stderr
    assert done.stdout == "", "only the parent got that far"
