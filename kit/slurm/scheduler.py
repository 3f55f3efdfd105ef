"""Slurm's commands on its login node: submit, look, signal, cancel.

Invariant: the controller is asked for the jobs of one array at once, and no more often than the
site's `poll_s`; a controller that does not answer changes nothing that was known.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from kit.engine.hub_token import TOKEN_NAMES
from kit.hosts.host import NOT_FOUND, Done, Host
from kit.slurm.task_state import TaskState, parse_tasks
from records.errors import SchedulerError

# slurm_strerror(3): a job that the controller has forgotten, MinJobAge seconds after its end.
_FORGOTTEN = "Invalid job id"
# sbatch(1), --parsable; what a site's own wrapper prints before it is passed over.
_NUMBER = re.compile(r"^(\d+)(?:;\S*)?$", re.MULTILINE)
# squeue(1), ENVIRONMENT VARIABLES: a user's own views, which would hide jobs from the kit, too.
_VIEWS = ("SQUEUE_ACCOUNT", "SQUEUE_LICENSES", "SQUEUE_PARTITION", "SQUEUE_QOS", "SQUEUE_USERS")
_AWAY = ("Unable to contact slurm controller", "Socket timed out", "Connection refused", "no end")
_TIMEOUT_S = 60


@dataclass(slots=True)
class Scheduler:
    """One login node. What was seen of an array is kept until it is due again.

    So is that nobody answered: a controller that is down lets each question wait for its time-out
    (slurm.conf(5), MessageTimeout), and a user may have a hundred runs.
    """

    login: Host
    poll_s: float
    _seen: dict[str, tuple[float, dict[str, TaskState]]] = field(default_factory=dict)
    _numbers: dict[str, str] = field(default_factory=dict)
    _away: tuple[float, SchedulerError] | None = None

    def require(self) -> None:
        """SchedulerError where this is no login node, before anything is made ready for it."""
        done = self.login.run(("sbatch", "--version"), timeout_s=_TIMEOUT_S)
        if done.status != 0:
            raise self._refused("sbatch", done)

    def submit(self, argv: Sequence[str], script: bytes) -> str:
        """The number of the array job. SchedulerError with what sbatch says."""
        done = self._run_without(TOKEN_NAMES, argv, script)
        numbers = _NUMBER.findall(done.stdout)
        if done.status != 0 or not numbers:
            raise self._refused("sbatch", done)
        return str(numbers[-1])

    def number(self, job_name: str) -> str:
        """The array job of this name, which none but one bears; "" where Slurm knows of none.

        A line that drops while sbatch answers has it run again (Host.run): the first job stays.
        """
        if job_name not in self._numbers:
            self._require_answers()
            argv = ("squeue", "--all", "-h", "-t", "all", f"--name={job_name}", "-o", "%j %F")
            done = self._run_without(_VIEWS, argv)
            if done.status != 0:
                raise self._not_told("squeue", done)
            lines = (line.split() for line in done.stdout.splitlines())
            found = sorted({int(words[1]) for words in lines if words[:1] == [job_name]})
            for extra in found[1:]:
                self.login.run(("scancel", str(extra)), timeout_s=_TIMEOUT_S)
            self._numbers[job_name] = str(found[0]) if found else ""
        return self._numbers[job_name]

    def task(self, name: str) -> TaskState | None:
        """The state of task `12_3`; None where Slurm does not know it any more."""
        array = name.partition("_")[0]
        at, seen = self._seen.get(array, (-math.inf, {}))
        if time.monotonic() - at >= self.poll_s:
            seen = self._look(array)
            self._seen[array] = time.monotonic(), seen
        return seen.get(name)

    def end(self, name: str) -> None:
        """Tell a task to mark its boot and end; one that has no node is taken out of the queue."""
        self._seen.clear()
        self._away = None
        state = self.task(name)
        if state is None or state.has_ended:
            return
        words = ("scancel", name) if state.waits else ("scancel", "--batch", "--signal=TERM", name)
        done = self.login.run(words, timeout_s=_TIMEOUT_S)
        self._seen.clear()
        if done.status != 0 and _FORGOTTEN not in done.stderr:
            raise self._refused("scancel", done)

    def _run_without(self, names: Sequence[str], argv: Sequence[str], stdin: bytes = b"") -> Done:
        """A command that is not to see these variables of the environment."""
        unset = [word for name in names for word in ("-u", name)]
        return self.login.run(("env", *unset, *argv), stdin=stdin, timeout_s=_TIMEOUT_S)

    def _look(self, array: str) -> dict[str, TaskState]:
        self._require_answers()
        done = self.login.run(("scontrol", "show", "job", "-o", array), timeout_s=_TIMEOUT_S)
        if done.status != 0 and _FORGOTTEN in done.stderr + done.stdout:
            return {}
        if done.status != 0:
            raise self._not_told("scontrol", done)
        return parse_tasks(done.stdout)

    def _require_answers(self) -> None:
        """SchedulerError where the controller did not answer just now."""
        if self._away is not None:
            at, error = self._away
            if time.monotonic() - at < self.poll_s:
                raise SchedulerError(error.message, error.remedy)
            self._away = None

    def _not_told(self, command: str, done: Done) -> SchedulerError:
        error = self._refused(command, done)
        if any(words in error.message for words in _AWAY):
            self._away = time.monotonic(), error
        return error

    def _refused(self, command: str, done: Done) -> SchedulerError:
        if done.status == NOT_FOUND:
            return SchedulerError(
                f"{self.login.name} has no {command}: it is no login node of a Slurm cluster",
                "name one: --fleet slurm --host user@login",
            )
        said = _said((done.stderr or done.stdout).strip().splitlines()) or f"status {done.status}"
        return SchedulerError(f"{command} on {self.login.name}: {said}", _remedy(said))


def _said(lines: Sequence[str]) -> str:
    """The line that says why: the last error, else the first, since advice on usage comes last."""
    errors = [line for line in lines if "error:" in line]
    return errors[-1] if errors else next(iter(lines), "")


def _remedy(said: str) -> str:
    if any(words in said for words in _AWAY):
        return (
            "is the controller up? scontrol ping; then the same command: it submits nothing twice"
        )
    lower = said.lower()
    if "partition" in lower and "account" not in lower:
        return "--fleet slurm:PARTITION; sinfo -s lists them"
    if "submit limit" in lower:
        return "fewer at once: --blocks 1,2; or qos in slurm.toml; sacctmgr show qos tells limits"
    if "time limit" in lower:
        return 'a lower time_factor in slurm.toml, or --fleet slurm:PARTITION; sinfo -o "%P %l"'
    if "node configuration" in lower:
        return 'gres and [constraint] in slurm.toml as its nodes have them: sinfo -o "%P %G %f"'
    if any(word in lower for word in ("account", "qos", "assoc")):
        return "account and qos in slurm.toml; sacctmgr show assoc user=$USER lists yours"
    if "gres" in lower:
        return 'the name of its GPUs in slurm.toml, gres = "gpu:l4"; sinfo -o "%P %G" lists them'
    if "feature" in lower:
        return 'its features below [constraint] in slurm.toml; sinfo -o "%P %f" lists them'
    if "array" in lower:
        return "fewer at once: --blocks 1,2; scontrol show config tells MaxArraySize"
    if "option" in lower:
        return "options in slurm.toml; sbatch --help lists what it takes"
    return "sinfo tells what there is"
