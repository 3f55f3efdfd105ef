"""Slurm's commands on its login node: submit, look, signal, cancel.

Invariant: the controller is asked for the jobs of one array at once, and no more often than the
site's `poll_s`; a controller that does not answer changes nothing that was known.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from kit.engine.hub_token import TOKEN_NAMES
from kit.hosts.host import NOT_FOUND, Done, Host
from kit.slurm.task_state import TaskState, parse_tasks
from records.errors import SchedulerError

# slurm_strerror(3): a job that the controller has forgotten, MinJobAge seconds after its end.
_FORGOTTEN = "Invalid job id"
_TIMEOUT_S = 60


@dataclass(slots=True)
class Scheduler:
    """One login node. What was seen of an array is kept until it is due again."""

    login: Host
    poll_s: float
    _seen: dict[str, tuple[float, dict[str, TaskState]]] = field(default_factory=dict)

    def require(self) -> None:
        """SchedulerError where this is no login node, before anything is made ready for it."""
        done = self.login.run(("sbatch", "--version"), timeout_s=_TIMEOUT_S)
        if done.status != 0:
            raise self._refused("sbatch", done)

    def submit(self, argv: Sequence[str], script: bytes) -> str:
        """The number of the array job. SchedulerError with what sbatch says."""
        unset = [word for name in TOKEN_NAMES for word in ("-u", name)]
        done = self.login.run(("env", *unset, *argv), stdin=script, timeout_s=_TIMEOUT_S)
        number = done.stdout.strip().partition(";")[0]
        if done.status != 0 or not number.isdecimal():
            raise self._refused("sbatch", done)
        return number

    def task(self, name: str) -> TaskState | None:
        """The state of task `12_3`; None where Slurm does not know it any more."""
        array = name.partition("_")[0]
        at, seen = self._seen.get(array, (0.0, {}))
        if not seen or time.monotonic() - at >= self.poll_s:
            seen = self._look(array)
            self._seen[array] = time.monotonic(), seen
        return seen.get(name)

    def end(self, name: str) -> None:
        """Tell a task to mark its boot and end; one that has no node is taken out of the queue."""
        self._seen.clear()
        state = self.task(name)
        if state is None or state.has_ended:
            return
        words = ("scancel", name) if state.waits else ("scancel", "--batch", "--signal=TERM", name)
        done = self.login.run(words, timeout_s=_TIMEOUT_S)
        self._seen.clear()
        if done.status != 0 and _FORGOTTEN not in done.stderr:
            raise self._refused("scancel", done)

    def _look(self, array: str) -> dict[str, TaskState]:
        done = self.login.run(("scontrol", "show", "job", "-o", array), timeout_s=_TIMEOUT_S)
        if done.status != 0 and _FORGOTTEN in done.stderr + done.stdout:
            return {}
        if done.status != 0:
            raise self._refused("scontrol", done)
        return parse_tasks(done.stdout)

    def _refused(self, command: str, done: Done) -> SchedulerError:
        if done.status == NOT_FOUND:
            return SchedulerError(
                f"{self.login.name} has no {command}: it is no login node of a Slurm cluster",
                "name one: --fleet slurm --host user@login",
            )
        words = (done.stderr or done.stdout).strip().splitlines()
        said = words[-1] if words else f"status {done.status}"
        return SchedulerError(
            f"{command} on {self.login.name}: {said}", "sinfo tells what there is"
        )
