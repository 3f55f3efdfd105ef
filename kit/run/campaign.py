"""Shares of one plan's blocks, and the process that works on one host's share.

Invariant: blocks are dealt so that every one has a host and no host is without; a process is told
apart from the others in what is shown and in how it ended.
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
    """What one host is to do. `blocks` counts from 1. `name`: what it is shown as, if not so."""

    host: str
    blocks: tuple[int, ...]
    name: str = ""

    @property
    def label(self) -> str:
        """What stands before its lines."""
        return self.name or self.host

    @property
    def listed(self) -> str:
        """The blocks as a command line has them."""
        return ",".join(str(block) for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a share ended, and its run. `run_id`: "" where its end is not known."""

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


class Worker:
    """A host's process and the threads that show what it says and keep what it tells."""

    def __init__(self, share: Share, argv: Sequence[str], say: Callable[[str], None]) -> None:
        self._share = share
        self._say = say
        self._last_line = ""
        # A session of its own: Ctrl-C reaches it once, from here, and not from the terminal too.
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
        """Whether it runs."""
        return self._process.poll() is None

    def interrupt(self) -> None:
        """As Ctrl-C would."""
        if self.is_alive():
            self._process.send_signal(signal.SIGINT)

    def outcome(self) -> Outcome:
        """How it ended; waits until it has."""
        self._process.wait()
        for thread in self._threads:
            thread.join()
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
                self._say(f"[{self._share.label}] {line.rstrip()}")

    def _take(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - stdout=PIPE, for the type checker
        with self._process.stdout as result:
            self._result = result.read()
