"""The log of a detached process on a host: its lines as they come, and the error it ended with.

Invariant: a line is shown once, whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kit.hosts.host import Host
from records.errors import InterruptedRunError, KitError

RESUMES = "start the same command again: it resumes at the next boot"


class LogTail:
    """What a log on a host has gained since the tail was made."""

    def __init__(self, host: Host, path: Path) -> None:
        self._host = host
        self._path = path
        self._data = b""
        self._shown = 0
        self._start = len(self._read(0))

    @property
    def text(self) -> str:
        """All of it since then."""
        return self._data.decode("utf-8", "replace")

    def lines(self) -> Iterator[str]:
        """The whole lines since the last call."""
        self._data += self._read(self._start + len(self._data))
        end = self._data.rfind(b"\n") + 1
        new, self._shown = self._data[self._shown : end], max(end, self._shown)
        yield from new.decode("utf-8", "replace").splitlines()

    def _read(self, offset: int) -> bytes:
        try:
            return self._host.read(self._path, offset)
        except FileNotFoundError:
            return b""


def harness_error(
    status: int, log: str, what: str, log_name: str, resumes: str = RESUMES
) -> KitError:
    """The error that a process of the kit on a host ended with, read from what it printed.

    `resumes`: what to type next where the process itself named nothing.
    """
    classes = {cls.exit_code: cls for cls in _subclasses(KitError)}
    message, remedy = last_error(log)
    if message and status in classes:
        return classes[status](f"{what}: {message}", remedy or resumes)
    if status == 0:
        return InterruptedRunError(f"{what}: the harness is gone without a seal", resumes)
    if status in classes:  # a full disk keeps the message out of the log, not out of the status
        return classes[status](f"{what}: {_meaning(classes[status])}", resumes)
    last = "\n".join(f"  {line}" for line in log.strip().splitlines()[-12:])
    return KitError(f"{what}: the harness ended with status {status}:\n{last}", f"read {log_name}")


def last_error(log: str) -> tuple[str, str]:
    """The last `error: …` block and its `  try: …` line; "" where there is none."""
    start = log.rfind("\nerror: ")
    block = log[start + 1 :] if start >= 0 else log
    if not block.startswith("error: "):
        return "", ""
    message, _, remedy = block.removeprefix("error: ").partition("\n  try: ")
    return message.strip(), remedy.strip().partition("\n")[0]


def _meaning(cls: type[KitError]) -> str:
    return " ".join((cls.__doc__ or cls.__name__).split("\n\n")[0].split())


def _subclasses(cls: type[KitError]) -> Iterator[type[KitError]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)
