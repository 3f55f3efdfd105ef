"""Between harness and engine: the engine's parent, and its end once the harness is gone.

Invariant: nothing of the engine is executed before the harness has said so over a pipe that the
harness alone writes to; when that pipe is closed, by whatever end of the harness, every process
below this one is killed, and this one ends after them.

A parent's death signal (prctl(2), PR_SET_PDEATHSIG) would not do: it comes with the end of the
thread that forked, is not inherited by what the engine forks, and is dropped where a program gains
privileges. A pipe that is held open is how PostgreSQL's processes notice that their postmaster
died, and a parent that adopts orphans (PR_SET_CHILD_SUBREAPER) how containerd's shims keep all that
a container started.
"""

from __future__ import annotations

import json
import os
import select
import signal
from types import FrameType
from typing import Any, NoReturn

from remote.engine import proctree

LENGTH_DIGITS = 8
GO = b"!"
_HARNESS, _TOLD, _LOG = 0, 1, 2
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 20, 1000


def main() -> None:
    """Serve one engine: its order and the word to go on fd 0, what became of it on fd 1.

    The order: its length in 8 digits, then JSON with argv, env and cwd. Said are lines of JSON: the
    engine's pid, once it waits for the word; [] or [errno, name] once it was, or could not be,
    executed; its exit status. fd 2: the engine's log.
    """
    order = _read_order()
    if order is None:
        return
    proctree.adopt_orphans()
    # Handled rather than ignored: what is ignored stays so in the engine. Whoever cancels a whole
    # job signals this process too, which must outlive the engine.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, _pass)
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    failed, fail = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(order, fail)
    os.close(fail)
    started = proctree.read(pid)
    _say(pid)
    with os.fdopen(failed) as words:  # at its end when the engine is executed, or has ended
        text = words.read()
    _say(json.loads(text) if text else [])
    _watch((pid, started.start_ticks if started else 0), woken)


def _watch(root: tuple[int, int], woken: int) -> None:
    """Until nothing is left below this process; from the harness's end on, see to that."""
    poller = select.poll()
    poller.register(woken, select.POLLIN)
    poller.register(_HARNESS, 0)  # a hang-up is always reported
    known: set[tuple[int, int]] = set()
    wait_ms: int | None = None
    while _reap(root[0]):
        if wait_ms is not None:
            known |= proctree.kill(root, known, keeper=os.getpid())
            wait_ms = min(2 * wait_ms, _LONGEST_WAIT_MS)
        for fd, _ in poller.poll(wait_ms):
            if fd == _HARNESS:
                poller.unregister(_HARNESS)
                wait_ms = _FIRST_WAIT_MS
            else:
                os.read(woken, 4096)


def _reap(first: int) -> bool:
    """Collect what has ended; whether there is a child left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        if pid == first:
            _say(os.waitstatus_to_exitcode(status))


def _become(order: dict[str, Any], fail: int) -> NoReturn:
    """The child: wait for the word, then be the engine, in a session of its own."""
    try:
        os.setsid()
        if os.read(_HARNESS, 1) != GO:
            os._exit(0)  # the harness is gone
        os.dup2(os.open(os.devnull, os.O_RDONLY), _HARNESS)
        os.dup2(_LOG, _TOLD)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, the engine shall not
            signal.signal(number, signal.SIG_DFL)
        name = order["cwd"]
        os.chdir(name)
        name = order["argv"][0]
        os.execvpe(name, order["argv"], order["env"])  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(fail, json.dumps([error.errno, name]).encode())
    finally:
        os._exit(127)


def _read_order() -> dict[str, Any] | None:
    head = _exactly(LENGTH_DIGITS)
    body = _exactly(int(head)) if head else b""
    found: dict[str, Any] | None = json.loads(body) if body else None
    return found


def _exactly(length: int) -> bytes:
    """So many bytes and no more, since what follows is for the child; b"" at the harness's end."""
    got = b""
    while len(got) < length:
        more = os.read(_HARNESS, length - len(got))
        if not more:
            return b""
        got += more
    return got


def _say(value: object) -> None:
    try:
        os.write(_TOLD, json.dumps(value).encode() + b"\n")
    except BrokenPipeError:
        return  # the harness is gone, which the other pipe tells


def _pass(_number: int, _frame: FrameType | None) -> None:
    """A signal that is not for this process."""
