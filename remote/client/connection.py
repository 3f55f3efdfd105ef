"""One connection of the client and the request it carries.

Invariant: a connection carries at most one request at a time; `number` outlives reconnects.
"""

from __future__ import annotations

import errno
import platform
from collections.abc import Callable
from socket import IPPROTO_TCP, SO_ERROR, SOCK_STREAM, SOL_SOCKET, TCP_NODELAY, socket
from typing import Any

from remote.client.http1 import ResponseReader
from remote.client.target import FAMILIES

# asm-generic/socket.h, SO_TIMESTAMPNS_OLD: a struct timespec of two 64-bit words on these machines.
# Python has no name for it.
_SO_TIMESTAMPNS = 35
_KNOWN_MACHINES = ("x86_64", "aarch64")

DOWN, CONNECTING, IDLE, BUSY = range(4)
NONE = -1


class Connection:
    """State that the receive loop changes. `left` is as in ResponseReader, kept up by the loop."""

    __slots__ = (
        "_socket",
        "fd",
        "index",
        "left",
        "number",
        "out",
        "reader",
        "receive",
        "serial",
        "served",
        "settled",
        "state",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.state = DOWN
        self.index = NONE  # the request it carries, or waits to send once connected
        self.serial = 0  # one more for each request: tells a deadline that has passed its request
        self.served = 0
        self.settled = False  # has answered, or failed, once
        self.left = NONE
        self.reader = ResponseReader()
        self.out: memoryview | None = None
        self.fd = NONE
        self._socket: socket | None = None
        self.receive: Callable[..., Any] = _closed

    def open(self, family: str, address: tuple[str, int] | str, *, kernel_stamps: bool) -> int:
        """Make the socket and begin to connect, without waiting; the errno of `connect`."""
        sock = socket(FAMILIES[family], SOCK_STREAM)
        sock.setblocking(False)
        if family != "unix":
            sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            if kernel_stamps and platform.machine() in _KNOWN_MACHINES:
                try:
                    sock.setsockopt(SOL_SOCKET, _SO_TIMESTAMPNS, 1)
                except OSError as error:  # a sandboxed kernel: stamps will be the client's own
                    if error.errno not in (errno.ENOPROTOOPT, errno.EINVAL, errno.EOPNOTSUPP):
                        raise
        self._socket, self.fd, self.receive = sock, sock.fileno(), sock.recvmsg_into
        self.state = CONNECTING
        return sock.connect_ex(address)

    def connected_socket(self) -> socket:
        """The socket of a connection that is not DOWN."""
        assert self._socket is not None  # noqa: S101 - only DOWN has none
        return self._socket

    def connect_error(self) -> int:
        """The errno with which a connection attempt ended; 0: connected."""
        return self.connected_socket().getsockopt(SOL_SOCKET, SO_ERROR)

    def close(self) -> None:
        """Drop the socket, if there is one."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self.fd, self.receive = None, NONE, _closed
        self.state, self.out, self.left = DOWN, None, NONE


def _closed(*_args: object) -> None:
    raise OSError(errno.ENOTCONN, "not connected")
