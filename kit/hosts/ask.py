"""Ask a host many short questions at once: one command there instead of one for each.

Invariant: each question is an argument list without a shell, run in the C locale with nothing on
its standard input; how it ends is told as `Host.run` tells it. All answers together take no longer
than `limit_s`: one that did not come is TIMED_OUT. A host that cannot carry out the batch is asked
one by one, so that nothing depends on it but time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from kit.hosts.facts import PROBE_TIMEOUT_S, PROBES, HostFacts, heard, parse
from kit.hosts.host import TIMED_OUT, Done

LIMIT_S = 120.0
_GRACE_S = 10
_ON_HOST = Path(__file__).resolve().parent / "ask_on_host.py"
# Program and questions come by standard input, so that the line which a login shell of whatever
# kind has to read is a plain one.
_READ = "import sys;exec(compile(sys.stdin.buffer.read({}),'ask_on_host','exec'))"


class Asked(Protocol):
    """What can be asked: a host, or a host for a bounded time."""

    @property
    def name(self) -> str:
        """As the user wrote it."""
        ...

    @property
    def python(self) -> str:
        """An interpreter there."""
        ...

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: int = 60) -> Done:
        """As Host.run."""
        ...


class Bounded:
    """A host that is asked for `limit_s` in all; what is asked later is TIMED_OUT at once."""

    def __init__(self, host: Asked, limit_s: float) -> None:
        self._host = host
        self._limit_s = limit_s
        self._deadline = time.monotonic() + limit_s

    @property
    def name(self) -> str:
        """The host's."""
        return self._host.name

    @property
    def python(self) -> str:
        """The host's."""
        return self._host.python

    @property
    def left_s(self) -> float:
        """What is left of its time."""
        return max(0.0, self._deadline - time.monotonic())

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: int = 60) -> Done:
        """As Host.run, while there is time."""
        left_s = int(self.left_s)
        if left_s == 0:
            return Done(TIMED_OUT, "", f"{argv[0]}: not asked, as {self._limit_s:.0f} s were over")
        # A batch that keeps to what is left gets the time to say so.
        return self._host.run(argv, stdin=stdin, timeout_s=min(timeout_s, left_s + _GRACE_S))


def ask_all(
    host: Asked, questions: Mapping[str, tuple[Sequence[str], int]], limit_s: float = LIMIT_S
) -> dict[str, Done]:
    """The answers by name; each question is (argument list, seconds it may take)."""
    program = _ON_HOST.read_bytes()
    asked = {
        "limit_s": limit_s,
        "questions": [[name, list(argv), limit] for name, (argv, limit) in questions.items()],
    }
    done = host.run(
        (host.python, "-I", "-S", "-c", _READ.format(len(program))),
        stdin=program + json.dumps(asked).encode(),
        timeout_s=int(limit_s) + _GRACE_S,
    )
    _, found, text = done.stdout.partition("kit-answers ")
    if done.status == TIMED_OUT:
        return dict.fromkeys(questions, Done(TIMED_OUT, "", done.stderr))
    if done.status != 0 or not found:
        one_by_one = Bounded(host, limit_s)
        return {
            name: one_by_one.run(argv, timeout_s=timeout_s)
            for name, (argv, timeout_s) in questions.items()
        }
    answers = json.loads(text)
    return {name: Done(*answers[name]) for name in questions}


def ask_facts(host: Asked, directory: Path) -> HostFacts:
    """What the host is. `directory`: one that exists there, whose disk is meant."""
    questions = {
        name: ([part.replace("{}", str(directory)) for part in argv], PROBE_TIMEOUT_S)
        for name, argv in PROBES.items()
    }
    told = ask_all(host, questions)
    return parse({name: heard(name, a.status, a.stdout, a.stderr) for name, a in told.items()})
