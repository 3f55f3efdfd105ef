"""One plan on several hosts: its blocks are dealt out, each host carries out its own run.

Invariant: each host is worked on by a process of its own, so that none can stop another; what a
host did not finish is named with its blocks, for the same host or another to take over.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from records.errors import BootsFailedError, PlanError


@dataclass(frozen=True, slots=True)
class Share:
    """What one host is to do. `blocks` counts from 1."""

    host: str
    blocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a host's process ended, and its run. `run_id`: "" where its end is not known."""

    share: Share
    status: int
    last_line: str
    run_id: str = ""
    completed: int = 0
    failed: int = 0

    @property
    def has_ended(self) -> bool:
        """Whether its run is sealed, be it with failed boots."""
        return self.status in (0, BootsFailedError.exit_code)


def deal(blocks: Sequence[int], hosts: Sequence[str]) -> tuple[Share, ...]:
    """The blocks in turn, so that each host has early and late ones. PlanError: a host too many."""
    if len(hosts) > len(blocks):
        raise PlanError(
            f"{len(hosts)} hosts for {len(blocks)} blocks: a host is given one block at least",
            f"name at most {len(blocks)} hosts, or raise blocks in the plan",
        )
    return tuple(Share(h, tuple(blocks[i :: len(hosts)])) for i, h in enumerate(hosts))


def carry_out(
    shares: Sequence[Share],
    argv: Callable[[Share], Sequence[str]],
    say: Callable[[str], None],
) -> tuple[Outcome, ...]:
    """Start every process, show their lines by host, wait for all. Ctrl-C stops all in order."""
    # Sessions of their own: Ctrl-C reaches them once, from here, and not from the terminal too.
    workers = [_Worker(share, argv(share), say) for share in shares]
    while any(worker.is_alive() for worker in workers):
        try:
            for worker in workers:
                worker.join()
        except KeyboardInterrupt:
            say("interrupted: asking every host's harness to mark its boot and stop")
            for worker in workers:
                worker.interrupt()
    return tuple(worker.outcome() for worker in workers)


class _Worker:
    """A host's process and the thread that shows what it says."""

    def __init__(self, share: Share, argv: Sequence[str], say: Callable[[str], None]) -> None:
        self._share = share
        self._say = say
        self._last_line = ""
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._result = ""
        self._threads = (
            threading.Thread(target=self._show, daemon=True),
            threading.Thread(target=self._take, daemon=True),
        )
        for thread in self._threads:
            thread.start()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def join(self) -> None:
        self._process.wait()
        for thread in self._threads:
            thread.join()

    def interrupt(self) -> None:
        if self.is_alive():
            self._process.send_signal(signal.SIGINT)

    def outcome(self) -> Outcome:
        self.join()
        try:
            told = json.loads(self._result)
        except json.JSONDecodeError:
            told = {}
        return Outcome(
            self._share,
            self._process.returncode,
            self._last_line,
            str(told.get("run_id", "")),
            int(told.get("completed", 0)),
            int(told.get("failed", 0)),
        )

    def _show(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - stderr=PIPE, for the type checker
        with self._process.stderr as lines:
            for line in lines:
                if line.startswith("error: "):
                    self._last_line = line.strip()
                self._say(f"[{self._share.host}] {line.rstrip()}")

    def _take(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - stdout=PIPE, for the type checker
        with self._process.stdout as result:
            self._result = result.read()
