"""What `scontrol show job -o` says of the tasks of an array job.

Invariant: text in, value out. A task that still waits may stand in a line with others, under a
range of numbers. States: squeue(1), JOB STATE CODES.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from records.errors import BootsFailedError, FormatError, InterruptedRunError

_ENDED = frozenset(
    {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL",
     "DEADLINE", "OUT_OF_MEMORY", "REVOKED"}
)  # fmt: skip
_WAITING = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD",
     "SPECIAL_EXIT"}
)  # fmt: skip
_WORD = re.compile(r"(?:^| )(JobState|Reason|ExitCode|ArrayJobId|ArrayTaskId|JobId)=(\S*)")


@dataclass(frozen=True, slots=True)
class TaskState:
    """One task. `status`, `signal`: what its script ended with, 0 while it has not."""

    state: str
    reason: str
    status: int
    signal: int

    @property
    def has_ended(self) -> bool:
        """Whether Slurm will not run it again by itself."""
        return self.state in _ENDED

    @property
    def waits(self) -> bool:
        """Whether it has no node now that is ready for it."""
        return self.state in _WAITING

    @property
    def ended_as(self) -> str:
        """As what Slurm ended it; "" where its script came to an end."""
        return self.state if self.has_ended and self.state not in ("COMPLETED", "FAILED") else ""

    @property
    def exit_status(self) -> int:
        """As of a process: what the harness ended with, or why Slurm ended it."""
        if self.state == "COMPLETED":
            return 0
        if self.state == "FAILED" and self.status:
            return self.status
        if self.state == "FAILED" and self.signal:
            return -self.signal
        # Cancelled, out of time, its node gone: what it had begun is gone on with by the next task.
        failed = BootsFailedError.exit_code
        return failed if self.status == failed else InterruptedRunError.exit_code


def parse_tasks(text: str) -> dict[str, TaskState]:
    """Every task by its name, `12_3`; a job that is no array by its number."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("JobId="):  # what a site's own wrapper says beside it
            continue
        words = dict(_WORD.findall(line))
        status, colon, signal = words.get("ExitCode", "").partition(":")
        if "JobState" not in words or not colon:
            raise FormatError(f"scontrol show job says {line[:120]!r}, without state or exit code")
        state = TaskState(words["JobState"], words.get("Reason", ""), int(status), int(signal))
        if "ArrayJobId" in words:
            for number in _numbers(words.get("ArrayTaskId", "")):
                found[f"{words['ArrayJobId']}_{number}"] = state
        else:
            found[words["JobId"]] = state
    return found


def _numbers(text: str) -> list[int]:
    """`1-3,5%2` as numbers; what follows `%` is how many may run at once."""
    found: list[int] = []
    for part in text.partition("%")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if match is None:
            raise FormatError(f"scontrol names tasks {text!r}")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        found.extend(range(first, last + 1, step))
    return found
