"""One engine process: start it, wait until it answers, stop it with everything it started.

Invariant: after `stop` returns without survivors no process of the engine's tree is alive, and no
process outside that tree was signalled. Steps in order: SIGINT to the group, the grace period,
SIGKILL to whatever is left.
"""

from __future__ import annotations

import http.client
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from records.errors import EngineBootError, KitError, PortInUseError
from remote.engine import proctree
from remote.engine.guarded import Guarded
from remote.engine.log import cause_of_death, last_lines
from remote.engine.ports import holder, listener_pids, require_port_free

GRACE_NS = 15_000_000_000
_KILL_WAIT_NS = 10_000_000_000
_POLL_S = 0.05
_TAIL_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Healthy:
    """The engine answered; counted from its start."""

    took_ns: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process of the engine that outlived SIGKILL."""

    pid: int
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class StopReport:
    """How the engine ended.

    `exit_status` is its first process's: -N where signal N ended it, None where it survived.
    """

    signals: tuple[str, ...]
    took_ns: int
    exit_status: int | None
    already_dead: bool
    processes_seen: int
    survivors: tuple[Survivor, ...]


class EngineProcess:
    """A started engine. Keeps every process of its tree that was ever seen."""

    def __init__(self, guarded: Guarded, log_path: Path, started_ns: int) -> None:
        self._guarded = guarded
        self.pid = guarded.pid
        self.log_path = log_path
        self.started_ns = started_ns
        self._root = guarded.key
        self._seen = {self._root}

    def exit_status(self) -> int | None:
        """None while the first process runs."""
        return self._guarded.exit_status()

    def members(self) -> tuple[proctree.Process, ...]:
        """The processes of the tree alive now; also reaps adopted ones that have ended."""
        keeper = self._guarded.keeper
        processes = proctree.snapshot()
        self._seen |= proctree.belonging(processes, self._root, self._seen, keeper)
        proctree.reap(self._seen, processes, except_pid=self.pid)
        self.exit_status()
        now = (processes.get(pid) for pid, _ in sorted(self._seen))
        return tuple(p for p in now if p is not None and p.key in self._seen and p.alive)

    def let_go(self) -> None:
        """The engine was stopped: its guard ends whatever is left, and ends."""
        self._guarded.let_go()

    @property
    def seen(self) -> int:
        """How many processes the tree has had, as far as it was looked at."""
        return len(self._seen)


def start(
    argv: Sequence[str],
    env: Mapping[str, str],
    log_path: Path,
    cwd: Path,
    listen: tuple[str, int] | None = None,
    remember: Callable[[tuple[int, int]], None] = lambda _key: None,
) -> EngineProcess:
    """Start an engine in a session of its own, stdout and stderr to a new file at `log_path`.

    `remember` is called with its pid and start time before anything of it is executed. If this
    process ends without `stop`, the engine is killed with all that it started (engine/guard.py).
    PortInUseError if `listen` is taken; EngineBootError if the program or the directory is not
    there, or the log exists already: a log holds one boot. The log is raw, so redact what is kept.
    """
    if listen is not None:
        require_port_free(*listen)
    proctree.adopt_orphans()
    try:
        log = log_path.open("xb")
    except OSError as error:
        raise EngineBootError(f"cannot create the engine's log: {error}") from error
    with log:
        guarded = Guarded(argv, env, cwd, log)
    try:
        remember(guarded.key)
    except (OSError, KitError):
        guarded.let_go()
        raise
    started_ns = time.monotonic_ns()
    try:
        guarded.go()
    except OSError as error:
        guarded.let_go()
        raise EngineBootError(
            f"cannot start the engine: {error}", remedy="install it again: make reproduce"
        ) from error
    return EngineProcess(guarded, log_path, started_ns)


def wait_healthy(
    engine: EngineProcess,
    listen: tuple[str, int],
    health_path: str,
    timeout_ns: int,
    poll_ns: int = 250_000_000,
) -> Healthy:
    """Poll until `health_path` answers 200.

    EngineBootError with the cause and the last lines of the log if the engine ends first or does
    not answer within `timeout_ns` of its start; PortInUseError if somebody else answers on its
    port. It is then left for `stop`.
    """
    attempts = 0
    while True:
        status = engine.exit_status()
        if status is not None:
            raise _boot_error(engine, f"the engine ended at boot {_how(status)}")
        attempts += 1
        if _answers(listen, health_path) and engine.exit_status() is None:
            _require_own_listener(engine, listen)
            return Healthy(time.monotonic_ns() - engine.started_ns, attempts)
        if time.monotonic_ns() - engine.started_ns > timeout_ns:
            seconds = timeout_ns // 1_000_000_000
            raise _boot_error(engine, f"the engine did not become healthy within {seconds} s")
        engine.members()
        time.sleep(poll_ns / 1e9)


def died(engine: EngineProcess, when: str, patience_ns: int = 10_000_000_000) -> EngineBootError:
    """The error for an engine that stopped answering, with the cause and last lines of its log."""
    deadline_ns = time.monotonic_ns() + patience_ns
    while engine.exit_status() is None and time.monotonic_ns() < deadline_ns:
        time.sleep(_POLL_S)
    status = engine.exit_status()
    how = "stopped answering" if status is None else f"ended {_how(status)}"
    return _boot_error(engine, f"the engine {how} {when}")


def _require_own_listener(engine: EngineProcess, listen: tuple[str, int]) -> None:
    """PortInUseError where what answers is not of the engine's tree: never measure a stranger."""
    listeners = listener_pids(listen[1])
    own = {process.pid for process in engine.members()}
    if listeners and not listeners & own:
        raise PortInUseError(
            f"port {listen[1]} answers, but {holder(listen[1])} listens there, not the engine",
            remedy="stop that process, then start the same command again: it resumes",
        )


def stop(engine: EngineProcess, grace_ns: int = GRACE_NS) -> StopReport:
    """End the whole tree; safe to call on an engine that is already dead, and twice."""
    began_ns = time.monotonic_ns()
    already_dead = engine.exit_status() is not None
    signals: list[str] = []
    alive = engine.members()
    if alive:
        signals.append("SIGINT")
        _interrupt(engine, alive)
        alive = _wait_gone(engine, began_ns + grace_ns)
    if alive:
        signals.append("SIGKILL")
        deadline_ns = time.monotonic_ns() + _KILL_WAIT_NS
        while alive and time.monotonic_ns() < deadline_ns:
            for process in alive:
                _signal(process, signal.SIGKILL)
            alive = _wait_gone(engine, min(time.monotonic_ns() + 500_000_000, deadline_ns))
    engine.let_go()
    return StopReport(
        signals=tuple(signals),
        took_ns=time.monotonic_ns() - began_ns,
        exit_status=engine.exit_status(),
        already_dead=already_dead,
        processes_seen=engine.seen,
        survivors=tuple(Survivor(p.pid, p.name, p.state) for p in alive),
    )


def _wait_gone(engine: EngineProcess, deadline_ns: int) -> tuple[proctree.Process, ...]:
    while (alive := engine.members()) and time.monotonic_ns() < deadline_ns:
        time.sleep(_POLL_S)
    return alive


def _interrupt(engine: EngineProcess, alive: Iterable[proctree.Process]) -> None:
    """SIGINT to the group at once, as Ctrl-C in a terminal does, and to members outside it."""
    if any(process.group == engine.pid for process in alive):
        try:
            os.killpg(engine.pid, signal.SIGINT)
        except ProcessLookupError:
            return
    for process in alive:
        if process.group != engine.pid:
            _signal(process, signal.SIGINT)


def _signal(process: proctree.Process, number: signal.Signals) -> None:
    """Signal exactly this process: its identity is checked just before."""
    now = proctree.read(process.pid)
    if now is not None and now.key == process.key:
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            return


def _answers(listen: tuple[str, int], path: str) -> bool:
    connection = http.client.HTTPConnection(*listen, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _boot_error(engine: EngineProcess, what: str) -> EngineBootError:
    with engine.log_path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        log = file.read()
    lines = "\n".join(f"  {line}" for line in last_lines(log))
    return EngineBootError(
        f"{what}: {cause_of_death(log)}\nlast lines of its log:\n{lines}",
        remedy=f"read the whole log: {engine.log_path.name}",
    )


def _how(status: int) -> str:
    return f"by signal {-status}" if status < 0 else f"with exit status {status}"
