"""Find every process that an engine started, whatever became of its parents.

Invariant: a process is named by (pid, start time), so a reused pid is never taken for it; zombies
do not count as alive. An engine's workers give themselves other titles and may outlive the server
that started them (vllm issue 55510), so names are no guide: session and descent are.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from records.errors import FormatError

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One process from /proc/<pid>/stat; `start_ticks` counts from the boot of the machine."""

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    start_ticks: int

    @property
    def key(self) -> tuple[int, int]:
        """What names this process for good: its pid and its start time."""
        return (self.pid, self.start_ticks)

    @property
    def alive(self) -> bool:
        """Whether it still runs: neither a zombie nor dead."""
        return self.state not in ("Z", "X", "x")


def parse_stat(text: str) -> Process:
    """Read one /proc/<pid>/stat (proc_pid_stat(5)); the name may hold blanks and parentheses."""
    head, opened, rest = text.partition("(")
    name, closed, tail = rest.rpartition(")")
    fields = tail.split()
    if not opened or not closed or len(fields) < 20:
        raise FormatError(f"not a /proc/<pid>/stat: {text!r}")
    return Process(
        pid=int(head),
        name=name,
        state=fields[0],
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
    )


def snapshot() -> dict[int, Process]:
    """Every process visible now, zombies included. One that ends while being read is left out."""
    found: dict[int, Process] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        process = read(int(entry.name))
        if process is not None:
            found[process.pid] = process
    return found


def read(pid: int) -> Process | None:
    """The process of this pid; None if there is none."""
    try:
        return parse_stat((_PROC / str(pid) / "stat").read_text(errors="replace"))
    except (FileNotFoundError, ProcessLookupError):
        return None


def adopt_orphans() -> bool:
    """Make this process the parent of its descendants' orphans; False where the kernel cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def belonging(
    processes: dict[int, Process],
    root: tuple[int, int],
    known: Iterable[tuple[int, int]],
    keeper: int | None = None,
) -> set[tuple[int, int]]:
    """Keys of the tree of `root`: its session, what was known before, and all their descendants.

    Orphans that left the session come to the engine's guard, `keeper`, of which every child is the
    engine's; without one to this process (see adopt_orphans): its children younger than the root
    and of a session that is not its own are taken as the engine's.
    """
    me = os.getpid()
    own_session = os.getsid(0)
    root_pid, root_start = root
    known_keys = set(known) | {root}
    # A pid is not given out again while a session of that number lives (kernel pid.c, alloc_pid and
    # free_pid): if somebody else has it, nothing of the engine's session is left.
    holder = processes.get(root_pid)
    session = root_pid if holder is None or holder.key == root else None
    members = {
        p.pid
        for p in processes.values()
        if p.key in known_keys
        or p.parent == keeper
        or (p.session == session and p.start_ticks >= root_start)
        or (
            keeper is None
            and p.parent == me
            and p.session != own_session
            and p.start_ticks > root_start
        )
    }
    grown = True
    while grown:
        more = {p.pid for p in processes.values() if p.parent in members} - members
        grown = bool(more)
        members |= more
    return {processes[pid].key for pid in members - {me}}


def reap(keys: Iterable[tuple[int, int]], processes: dict[int, Process], except_pid: int) -> None:
    """Collect adopted children of this process that have ended; `except_pid` is left to Guarded."""
    me = os.getpid()
    for key in keys:
        process = processes.get(key[0])
        if process is None or process.key != key or process.alive:
            continue
        if process.parent == me and process.pid != except_pid:
            try:
                os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:
                continue


def kill(
    root: tuple[int, int], known: set[tuple[int, int]], keeper: int | None = None
) -> set[tuple[int, int]]:
    """SIGKILL to all that is alive of the tree (see `belonging`); their keys.

    Whoever forks in that moment may have a child left: call it until it finds none.
    """
    processes = snapshot()
    keys = belonging(processes, root, known, keeper)
    alive = {p.key for p in processes.values() if p.key in keys and p.alive}
    for pid, _ in alive:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue  # ended meanwhile; or of another user, whom only root may end
    return alive
