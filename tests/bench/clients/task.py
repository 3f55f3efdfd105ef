"""What every measured client is asked and what it says, so that all do the same work.

Invariant: a client runs in a process of its own; CPU time counts from the first request on.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Task:
    """`streams` requests at a time, `rounds` of them after each other, of `chunks` chunks each."""

    url: str
    port: int
    streams: int
    rounds: int
    chunks: int
    out: Path

    @classmethod
    def from_argv(cls) -> Task:
        """From the command line that `command` writes."""
        port, streams, rounds, chunks = map(int, sys.argv[1:5])
        return cls(
            f"http://127.0.0.1:{port}/v1/completions", port, streams, rounds, chunks,
            Path(sys.argv[5]),
        )  # fmt: skip

    def body(self, index: int) -> dict[str, Any]:
        """The request every client sends, as the kit's own does."""
        return {
            "model": "synthetic",
            "prompt": f"Request {index}.",
            "max_tokens": self.chunks,
            "ignore_eos": True,
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "return_token_ids": True,
        }


@dataclass
class Result:
    """`stamps[id]`: CLOCK_MONOTONIC ns at which the client saw each chunk. `upper[id]`: those it
    knows to be late, for they shared a read with a later one (None: it cannot tell). `which`: the
    chunks that were stamped, where a client reports a few of them only (None: all).
    """

    version: str
    stamps: dict[int | str, list[int]] = field(default_factory=dict)
    upper: dict[int, list[int]] | None = None
    cpu_ns: int = 0
    which: list[int] | None = None

    def start(self) -> None:
        """The first request is about to be sent."""
        self.cpu_ns = -time.process_time_ns()

    def finish(self, task: Task) -> None:
        """The last response has ended."""
        self.cpu_ns += time.process_time_ns()
        self.write(task)

    def write(self, task: Task) -> None:
        """Hand the result over."""
        value = {
            "version": self.version,
            "cpu_ns": self.cpu_ns,
            "stamps": self.stamps,
            "upper": self.upper,
            "which": self.which,
        }
        task.out.write_text(json.dumps(value))
