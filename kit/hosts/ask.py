"""Ask a host many short questions at once: one command there instead of one for each.

Invariant: each question is an argument list without a shell, run in the C locale with nothing on
its standard input; how it ends is told as `Host.run` tells it. A host that cannot carry out the
batch is asked one by one, so that nothing depends on it but time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from kit.hosts.host import NOT_FOUND, TIMED_OUT, Done, Host

# Standard library of Python 3.10; program and questions come by standard input, so that the line
# which a login shell of whatever kind has to read is a plain one.
_READ = "import sys;exec(compile(sys.stdin.buffer.read({}),'ask_host','exec'))"
_PROGRAM = f"""
import json, os, subprocess, sys
answers = {{}}
for name, argv, timeout_s in json.loads(sys.stdin.buffer.read()):
    try:
        done = subprocess.run(argv, env=dict(os.environ, LC_ALL="C"), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=timeout_s)
        answers[name] = [done.returncode, done.stdout.decode("utf-8", "replace"),
                         done.stderr.decode("utf-8", "replace")]
    except (FileNotFoundError, PermissionError):
        answers[name] = [{NOT_FOUND}, "", argv[0] + ": not found"]
    except subprocess.TimeoutExpired:
        answers[name] = [{TIMED_OUT}, "", "%s: no end after %d s" % (argv[0], timeout_s)]
print("kit-answers " + json.dumps(answers))
""".encode()


def ask_all(host: Host, questions: Mapping[str, tuple[Sequence[str], int]]) -> dict[str, Done]:
    """The answers by name; each question is (argument list, seconds it may take)."""
    asked = [[name, list(argv), timeout_s] for name, (argv, timeout_s) in questions.items()]
    done = host.run(
        (host.python, "-I", "-S", "-c", _READ.format(len(_PROGRAM))),
        stdin=_PROGRAM + json.dumps(asked).encode(),
        timeout_s=sum(timeout_s for _, timeout_s in questions.values()) + 10,
    )
    _, found, text = done.stdout.partition("kit-answers ")
    if done.status != 0 or not found:
        return {
            name: host.run(argv, timeout_s=timeout_s)
            for name, (argv, timeout_s) in questions.items()
        }
    answers = json.loads(text)
    return {name: Done(*answers[name]) for name in questions}
