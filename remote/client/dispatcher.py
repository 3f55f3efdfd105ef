"""Which connection carries which request, and what becomes of it.

Invariant: a request begun (BEGUN in the log) ends by the last byte of its response, by ENDED or by
FAILED; no call here waits.
"""

from __future__ import annotations

import errno
import os
import select
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from records.load import Load
from remote.client import wire_log
from remote.client.clock import read_offset
from remote.client.connection import BUSY, CONNECTING, DOWN, IDLE, NONE, Connection
from remote.client.http1 import ProtocolError, ResponseReader
from remote.client.target import RequestSource, Target, request_bytes
from remote.client.wire_log import CONNECTION_PAYLOAD, WireLog
from remote.client.work import NS_PER_MS, ClosedWork

TICK_NS = 100_000_000
# Sends between two looks at the sockets: a burst must not keep the loop from reading.
_SENDS_A_TURN = 8
# Before the next request of a connection that was refused: a dead server must not eat the budget.
_BACKOFF_NS = 100_000_000
_CONNECT_TIMEOUT_MS = 10_000
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Job:
    """What one worker process carries out, over `connections` connections of its own."""

    target: Target
    source: RequestSource
    load: Load
    work: ClosedWork | Iterator[tuple[int, int]]
    connections: int


class Dispatcher:
    """The connections of one worker. `wake_ns`: when `housekeep` wants to be called next."""

    def __init__(self, job: Job, log: WireLog, epoll: select.epoll) -> None:
        self._log, self._epoll, self._source = log, epoll, job.source
        self._family, self._address = job.target.family, job.target.address()
        self._stamps = job.target.kernel_stamps
        self._head = job.target.head()
        self._closed = job.work if isinstance(job.work, ClosedWork) else None
        self._open = iter(()) if isinstance(job.work, ClosedWork) else job.work
        self._next = next(self._open, None)
        self._timeout_ns = job.load.timeout_ms * NS_PER_MS
        self._duration_ns = job.load.duration_ms * NS_PER_MS
        self._all = [Connection(number) for number in range(job.connections)]
        self._free: list[Connection] = []  # open loop; the last used first
        self._waiting: deque[tuple[int, int]] = deque()  # open loop: due, but no connection free
        self._todo: deque[tuple[int, Connection]] = deque()  # closed loop: (not before ns, who)
        self._deadlines: deque[tuple[int, Connection, int]] = deque()
        self._busy = 0
        self._unsettled = job.connections
        self._start_ns = self._end_ns = self._tick_ns = 0
        self.by_fd: dict[int, Connection] = {}
        self.wake_ns = 0
        self.over = False
        # Requests sent before this belong to the ramp. Closed loop: until each connection has had
        # its first byte or failure. Open loop: until the first request has ended. 0: not yet.
        self.ramp_end_ns = 0

    def connect(self) -> None:
        """Open every connection before the window; one that cannot be is tried again in it."""
        for c in self._all:
            error = c.open(self._family, self._address, kernel_stamps=self._stamps)
            if error == errno.EINPROGRESS:
                poller = select.poll()
                poller.register(c.fd, select.POLLOUT)
                connected = poller.poll(_CONNECT_TIMEOUT_MS)
                error = c.connect_error() if connected else errno.ETIMEDOUT
            if error:
                c.close()
                break  # the next ones would wait for the same
            self._register(c, select.EPOLLIN)
            c.state = IDLE
        if self._closed is None:
            self._free = self._all[::-1]
        else:
            self._todo.extend((0, c) for c in self._all)

    def start(self, start_ns: int) -> None:
        """The window begins: due times count from `start_ns` (CLOCK_MONOTONIC)."""
        self._start_ns = start_ns
        self._end_ns = start_ns + self._duration_ns if self._duration_ns else _NEVER
        self._log_offset()

    def stop(self) -> None:
        """The window is over: close everything."""
        self._log_offset()
        for c in self._all:
            self._drop(c)

    def housekeep(self, now: int) -> None:
        """Do what is due by the clock, set `wake_ns`, or `over` when nothing is left to do."""
        if now >= self._end_ns:
            self._cancel(now)
            return
        if now >= self._tick_ns:
            self._log_offset()
            self._tick_ns = now + TICK_NS
        while self._deadlines and self._deadlines[0][0] <= now:
            _, c, serial = self._deadlines.popleft()
            if c.serial == serial and c.index != NONE:
                self.fail(c, "timeout", f"no end within {self._timeout_ns // NS_PER_MS} ms", now)
        more = self._begin_due(now)
        if not self._busy and not (self._next or self._waiting or self._todo):
            self.over = True
            return
        wake = min(self._tick_ns, self._end_ns)
        if self._deadlines:
            wake = min(wake, self._deadlines[0][0])
        if self._next is not None:
            wake = min(wake, self._start_ns + self._next[1])
        if self._todo:
            wake = min(wake, self._todo[0][0])
        self.wake_ns = now if more else wake

    def special(self, c: Connection, event: int) -> bool:
        """Anything but plain readability; whether there is something to read as well."""
        if c.state == CONNECTING:
            error = c.connect_error()
            if error:
                self._connect_failed(c, error)
            else:
                self._connected(c)
            return False
        if event & select.EPOLLOUT and c.out is not None:
            try:
                c.out = c.out[c.connected_socket().send(c.out) :]
            except BlockingIOError:
                pass
            except OSError as error:
                self.broken(c, error)
                return False
            if not c.out:
                c.out = None
                self._epoll.modify(c.fd, select.EPOLLIN)
        return bool(event & ~select.EPOLLOUT)

    def parse(self, c: Connection, data: bytes, now: int) -> None:
        """What the steady state does not cover: heads, ends, odd framing."""
        if c.state != BUSY:  # bytes nobody asked for
            self._drop(c)
            return
        self._settle(c, now)
        try:
            c.reader.feed(data)
        except ProtocolError as error:
            self.fail(c, "bad-http", str(error), now)
            return
        if c.reader.done:
            self._finish(c, now)
        else:
            c.left = c.reader.left

    def closed_by_peer(self, c: Connection, now: int) -> None:
        """The server has closed; that may be the end of a response, a fault or nothing at all."""
        if c.state != BUSY:
            self._drop(c)
            if c.served:  # an idle connection timed out at the server: have a fresh one ready
                self._open_connection(c)
        elif c.reader.close():
            self._log.append(wire_log.ENDED, now, CONNECTION_PAYLOAD.pack(c.number))
            self._finish(c, now)
        else:
            self.fail(c, "truncated", "the server closed in mid-response", now)

    def broken(self, c: Connection, error: OSError) -> None:
        """A read or send failed."""
        if isinstance(error, BlockingIOError):
            return
        if c.state == BUSY:
            self.fail(c, "reset", error.strerror or str(error), time.monotonic_ns())
        else:
            self._drop(c)

    def fail(self, c: Connection, kind: str, words: str, now: int) -> None:
        """The request ends without a whole response, and its connection with it."""
        self._log_failure(c.number, kind, words, now)
        self._busy -= 1
        c.index = NONE
        self._settle(c, now)
        self._drop(c)
        if self._closed is None:
            self._free.append(c)
        elif not self._closed.exhausted:
            self._todo.append((now + _BACKOFF_NS if kind == "connect" else now, c))
        self.wake_ns = now

    def _begin_due(self, now: int) -> bool:
        """Begin requests that are due; whether there may be more of them."""
        for _ in range(_SENDS_A_TURN):
            if self._closed is not None:
                if not self._todo or self._todo[0][0] > now:
                    return False
                self._claim(self._todo.popleft()[1], now)
                continue
            due = self._next is not None and self._start_ns + self._next[1] <= now
            if self._next is not None and due:
                self._waiting.append(self._next)
                self._next = next(self._open, None)
            if self._waiting and self._free:
                self._begin(self._free.pop(), *self._waiting.popleft(), now)
            elif not due:
                return False
        return True

    def _claim(self, c: Connection, now: int) -> None:
        assert self._closed is not None  # noqa: S101 - the callers asked
        index = self._closed.claim()
        if index != NONE:
            self._begin(c, index, NONE, now)

    def _begin(self, c: Connection, index: int, due_ns: int, now: int) -> None:
        self._log_begun(c.number, index, due_ns, now)
        c.index = index
        c.serial += 1
        self._busy += 1
        self._deadlines.append((now + self._timeout_ns, c, c.serial))
        if c.state == IDLE:
            self._transmit(c)
        elif c.state == DOWN:
            self._open_connection(c)

    def _transmit(self, c: Connection) -> None:
        data = request_bytes(self._head, c.index, self._source.body(c.index))
        c.state, c.reader, c.left = BUSY, ResponseReader(), NONE
        error, sent = None, len(data)
        sent_ns = time.monotonic_ns()
        try:
            sent = c.connected_socket().send(data)
        except BlockingIOError:
            sent = 0
        except OSError as caught:
            error = caught
        self._log.append(wire_log.SENT, sent_ns, CONNECTION_PAYLOAD.pack(c.number))
        if error is not None:
            self.broken(c, error)
        elif sent < len(data):
            c.out = memoryview(data)[sent:]
            self._epoll.modify(c.fd, select.EPOLLIN | select.EPOLLOUT)

    def _finish(self, c: Connection, now: int) -> None:
        """The response is whole: send the connection's next request at once."""
        self._busy -= 1
        c.served += 1
        c.index, c.left, c.state = NONE, NONE, IDLE
        if not c.reader.keep_alive or c.out is not None:  # or answered before it was fully asked
            self._drop(c)
        if self._closed is not None:
            self._claim(c, now)
        elif self._waiting:
            self._begin(c, *self._waiting.popleft(), now)
        else:
            self._free.append(c)
        if self._closed is None and not self.ramp_end_ns:
            self.ramp_end_ns = now
        if not self._busy:
            self.wake_ns = now

    def _settle(self, c: Connection, now: int) -> None:
        if not c.settled:
            c.settled = True
            self._unsettled -= 1
            if not self._unsettled and self._closed is not None:
                self.ramp_end_ns = now

    def _cancel(self, now: int) -> None:
        for c in self._all:
            if c.index != NONE:
                self.fail(c, "cancelled", "the window was over", now)
        words = "the window was over before a connection was free"
        for index, due_ns in (
            *self._waiting,
            *(() if self._next is None else (self._next,)),
            *self._open,
        ):
            self._log_begun(NONE, index, due_ns, now)
            self._log_failure(NONE, "cancelled", words, now)
        self.over = True

    def _register(self, c: Connection, events: int) -> None:
        self.by_fd[c.fd] = c
        self._epoll.register(c.fd, events)

    def _open_connection(self, c: Connection) -> None:
        error = c.open(self._family, self._address, kernel_stamps=self._stamps)
        if error in (0, errno.EINPROGRESS):
            self._register(c, select.EPOLLOUT)
        else:
            self._connect_failed(c, error)

    def _connected(self, c: Connection) -> None:
        self._epoll.modify(c.fd, select.EPOLLIN)
        c.state = IDLE
        if c.index != NONE:
            self._transmit(c)

    def _connect_failed(self, c: Connection, error: int) -> None:
        if c.index != NONE:
            self.fail(c, "connect", os.strerror(error), time.monotonic_ns())
        else:
            self._drop(c)

    def _drop(self, c: Connection) -> None:
        self.by_fd.pop(c.fd, None)
        c.close()

    def _log_begun(self, number: int, index: int, due_ns: int, now: int) -> None:
        self._log.append(wire_log.BEGUN, now, wire_log.BEGUN_PAYLOAD.pack(number, index, due_ns))

    def _log_failure(self, number: int, kind: str, words: str, now: int) -> None:
        payload = CONNECTION_PAYLOAD.pack(number) + f"{kind}\0{words}".encode()
        self._log.append(wire_log.FAILED, now, payload)

    def _log_offset(self) -> None:
        offset = read_offset()
        payload = wire_log.OFFSET_PAYLOAD.pack(offset.ns, offset.width_ns)
        self._log.append(wire_log.OFFSET, time.monotonic_ns(), payload)
