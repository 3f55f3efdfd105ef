"""Run commands one after the other, each for a bounded time; on a host by its Python, from stdin.

Invariant: no command is waited for beyond its time, whatever it does with signals: a program in
uninterruptible sleep (nvidia-smi under a dead driver) cannot even be killed, and stays behind. One
that did not answer is not asked again. Standard library of Python 3.10 alone.

Standard input, once this program has been read from it: JSON of `limit_s` for all questions, and of
`questions`, each name, argument list and the seconds it may take. Printed: `kit-answers` and JSON
of status, stdout and stderr by name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence

NOT_FOUND = 127  # what a shell says of a program that is not there
CANNOT_RUN = 126  # likewise
TIMED_OUT = 124  # as timeout(1) says it
_KILLED_S = 1.0

Answer = tuple[int, str, str]  # status (-N: ended by signal N), stdout, stderr


def bounded(
    argv: Sequence[str], env: Mapping[str, str], timeout_s: float, stdin: bytes = b""
) -> Answer:
    """The command to its end, or to that of its time."""
    try:
        process = subprocess.Popen(
            list(argv),
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except (FileNotFoundError, PermissionError):
        return NOT_FOUND, "", f"{argv[0]}: not found"
    except OSError as error:  # for another processor, or with too many words
        return CANNOT_RUN, "", f"{argv[0]}: {error.strerror}"
    try:
        out, err = process.communicate(stdin, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        more = "" if _killed(process) else ", nor when it was killed"
        return TIMED_OUT, "", f"{argv[0]}: no end after {timeout_s:g} s{more}"
    except BaseException:
        _killed(process)
        raise
    return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def answers(
    questions: Sequence[tuple[str, Sequence[str], float]], limit_s: float
) -> dict[str, Answer]:
    """Each answer by the question's name, all of them within `limit_s`."""
    deadline = time.monotonic() + limit_s
    found: dict[str, Answer] = {}
    silent: set[str] = set()
    for name, argv, timeout_s in questions:
        left_s = deadline - time.monotonic()
        if argv[0] in silent:
            found[name] = TIMED_OUT, "", f"{argv[0]}: not asked again, as it had not answered"
        elif left_s <= 0:
            found[name] = TIMED_OUT, "", f"{argv[0]}: not asked, as {limit_s:.0f} s were over"
        else:
            env = {**os.environ, "LC_ALL": "C"}
            found[name] = bounded(argv, env, round(min(timeout_s, max(left_s, 0.1)), 1))
            if found[name][0] == TIMED_OUT:
                silent.add(argv[0])
    return found


def _killed(process: subprocess.Popen[bytes]) -> bool:
    """Whether it ended when killed. Where not, it is waited for beside all else, and left alone."""
    process.kill()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(_KILLED_S)
    except subprocess.TimeoutExpired:
        threading.Thread(target=process.wait, daemon=True).start()
        return False
    return True


def _main() -> None:
    asked = json.loads(sys.stdin.buffer.read())
    print("kit-answers " + json.dumps(answers(asked["questions"], asked["limit_s"])))


if __name__ == "__main__":
    _main()
