"""A connection to one host that comes back by itself when the line drops.

Invariant: commands are quoted in one place, `_line`; only what may safely happen twice goes through
`again`; a host key or a login that is refused is never tried a second time.
"""

from __future__ import annotations

import errno
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import paramiko

from kit.hosts.host import TIMED_OUT, Done
from kit.ssh.config import Destination
from kit.ssh.known_hosts import Meeting
from kit.ssh.login import LoginDroppedError, close, dropped, login
from records.errors import ConnectionLostError, HostUnreachableError, NoSshServerError

T = TypeVar("T")

PATIENCE_S = 600
_DELAYS_S = (0.5, 1, 2, 4, 8, 15, 30)
_QUIET_S = 30.0
_LOGINS = 3
_BLOCK_BYTES = 1 << 15
# What the far side says of a file, as against what happens to the line.
_ABOUT_FILES = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST})


@dataclass(frozen=True, slots=True)
class Live:
    """An open connection. `sftp` is opened with it."""

    chain: list[paramiko.Transport]
    sftp: paramiko.SFTPClient

    @property
    def transport(self) -> paramiko.Transport:
        """The one that reaches the host."""
        return self.chain[-1]

    def is_up(self) -> bool:
        """Whether commands can still be sent, as far as is known here."""
        channel = self.sftp.get_channel()
        return self.transport.is_active() and channel is not None and not channel.closed


class SshConnection:
    """One host's connection. It opens on first use; several threads may share it."""

    def __init__(
        self, destination: Destination, meeting: Meeting, patience_s: float = PATIENCE_S
    ) -> None:
        self.destination = destination
        self.meeting = meeting
        self._patience_s = patience_s
        self._live: Live | None = None
        self._lock = threading.RLock()

    def again(self, operation: Callable[[Live], T]) -> T:
        """Carry out what may happen twice; when the line drops, come back and do it again.

        Errors of the first login as `login`; ConnectionLostError once patience has ended.
        """
        with self._lock:
            if self._live is None:
                self._live = self._open()
            deadline = 0.0
            while True:
                try:
                    return operation(self._live)
                except (paramiko.SSHException, EOFError, OSError) as error:
                    if isinstance(error, OSError) and error.errno in _ABOUT_FILES:
                        raise
                    if self._live.is_up() and not isinstance(error, TimeoutError):
                        raise
                    now = time.monotonic()
                    deadline = deadline or now + self._patience_s
                    self._live = self._back(error, deadline)

    def run(self, argv: Sequence[str], stdin: bytes, timeout_s: float) -> Done:
        """A command to its end; TIMED_OUT as its status if it has none after `timeout_s`."""
        return self.again(lambda live: _run(live, argv, stdin, timeout_s))

    def close(self) -> None:
        """Hang up. The next use opens it again."""
        with self._lock:
            if self._live is not None:
                close(self._live.chain)
                self._live = None

    def _open(self) -> Live:
        for _ in range(_LOGINS - 1):
            try:
                return self._open_once()
            except LoginDroppedError as error:
                self.meeting.say(f"{error.message}; trying again")
                time.sleep(_DELAYS_S[0])
        return self._open_once()

    def _open_once(self) -> Live:
        chain = login(self.destination, self.meeting)
        try:
            sftp = paramiko.SFTPClient.from_transport(chain[-1])
        except (paramiko.SSHException, paramiko.SFTPError, EOFError, OSError) as error:
            is_up = chain[-1].is_active()
            close(chain)
            if not is_up:
                raise dropped(self.destination, error) from error
            raise NoSshServerError(
                f"{self.destination.typed}: its SSH server offers no working SFTP ({error})",
                "install sftp-server there (Debian: openssh-sftp-server); a shell whose start-up "
                "files print something breaks it, too",
            ) from error
        assert sftp is not None  # noqa: S101 - from_transport gives None for no channel alone
        channel = sftp.get_channel()
        if channel is not None:
            channel.settimeout(_QUIET_S)
        return Live(chain, sftp)

    def _back(self, error: BaseException, deadline: float) -> Live:
        assert self._live is not None  # noqa: S101 - it was just used
        close(self._live.chain)
        name = self.destination.typed
        self.meeting.say(f"{name}: connection lost ({error or 'hung up'}); what runs there goes on")
        for number in range(1 << 16):
            delay = _DELAYS_S[min(number, len(_DELAYS_S) - 1)]
            if time.monotonic() + delay > deadline:
                break
            time.sleep(delay)
            try:
                live = self._open()
            except (HostUnreachableError, NoSshServerError) as still:
                self.meeting.say(f"{name}: not back yet: {still.message}")
                continue
            self.meeting.say(f"{name}: connected again")
            return live
        raise ConnectionLostError(
            f"{name}: the connection was lost and did not come back within {self._patience_s:g} s",
            "what was started goes on there; the same command attaches to it again",
        )


def _line(argv: Sequence[str]) -> str:
    """The only place where a command for a host is quoted (POSIX sh, section 2.2)."""
    return shlex.join(["env", "LC_ALL=C", *argv])


def _run(live: Live, argv: Sequence[str], stdin: bytes, timeout_s: float) -> Done:
    channel = live.transport.open_session(timeout=_QUIET_S)
    with channel:
        channel.settimeout(_QUIET_S)
        channel.exec_command(_line(argv))
        if stdin:
            channel.sendall(stdin)
        channel.shutdown_write()
        out, err = bytearray(), bytearray()
        deadline = time.monotonic() + timeout_s
        while not _drain(channel, out, err):
            if not live.transport.is_active():
                raise EOFError("hung up")
            if time.monotonic() > deadline:
                return Done(TIMED_OUT, _text(out), f"{argv[0]}: no end after {timeout_s:g} s")
            time.sleep(0.01)
        status = channel.recv_exit_status()
        if status == -1:  # no exit-status and no exit-signal message came (RFC 4254, 6.10)
            raise EOFError("hung up before the command had ended")
        return Done(status, _text(out), _text(err))


def _drain(channel: paramiko.Channel, out: bytearray, err: bytearray) -> bool:
    """Take what has arrived; whether that was all."""
    while channel.recv_ready():
        out += channel.recv(_BLOCK_BYTES)
    while channel.recv_stderr_ready():
        err += channel.recv_stderr(_BLOCK_BYTES)
    ended = channel.eof_received or channel.closed
    return bool(
        ended
        and not channel.recv_ready()
        and not channel.recv_stderr_ready()
        and (channel.exit_status_ready() or channel.closed)
    )


def _text(data: bytearray) -> str:
    return data.decode("utf-8", "replace")
