"""The I/O loop: one thread, one epoll, one heap of due times.

Invariant: a chunk's stamp is taken just before the send() of its last byte; the next chunk is
encoded after a send, in the idle time before it is due. Due times follow from each other, not from
true sends, so lateness does not pile up in the schedule but shows in the truth.
"""

from __future__ import annotations

import gc
import heapq
import select
import socket
import struct
import time
from collections import deque

from remote.reference.request import BadRequestError, expects_continue, take
from remote.reference.service import Response, Service
from remote.reference.wire import CLOSE, DONE, RESET, STALL, Piece

_READ_BYTES = 262_144
_INBOX_BYTES = 1 << 20  # pipelined bytes taken in while a response is under way
_BATCH = 64  # sends between two looks at the sockets
_IDLE_NS = 1_000_000_000
_NO_PIECE = Piece(0, b"")


class Connection:
    """One client connection: bytes read and not used, and the response under way."""

    __slots__ = (
        "continued",
        "data",
        "due_ns",
        "inbox",
        "mask",
        "open",
        "piece",
        "response",
        "serial",
        "sock",
    )

    def __init__(self, sock: socket.socket, serial: int) -> None:
        self.sock = sock
        self.serial = serial
        self.inbox = bytearray()
        self.response: Response | None = None
        self.piece = _NO_PIECE
        self.data: bytes | memoryview = b""
        self.due_ns = 0
        self.continued = False
        self.mask = select.EPOLLIN
        self.open = True


class Server:
    """Serves `service` on `listeners` until `stop`; `margin_ns` is spent spinning before a send."""

    def __init__(
        self, service: Service, listeners: list[socket.socket], *, spin: bool, margin_ns: int
    ) -> None:
        self._service = service
        self._spin = spin
        self._margin_ns = margin_ns
        self._epoll = select.epoll()
        self._listeners = {sock.fileno(): sock for sock in listeners}
        self._connections: dict[int, Connection] = {}
        self._heap: list[tuple[int, int, Connection]] = []
        self._ready: deque[Connection] = deque()
        self._serial = 0
        self._stopping = False
        self._wake_read, self._wake_write = socket.socketpair()
        for wake in (self._wake_read, self._wake_write):
            wake.setblocking(False)

    @property
    def wake_fd(self) -> int:
        """For signal.set_wakeup_fd: a byte written here ends the wait."""
        return self._wake_write.fileno()

    def stop(self) -> None:
        """End `run` soon; callable from another thread or a signal handler."""
        self._stopping = True
        self._wake_write.send(b"x")

    def run(self) -> None:
        """Serve until stopped, then close every socket."""
        for fd, sock in self._listeners.items():
            sock.setblocking(False)
            self._epoll.register(fd, select.EPOLLIN)
        self._epoll.register(self._wake_read.fileno(), select.EPOLLIN)
        # No collector pause in a window; the loop builds no reference cycles.
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            while not self._stopping:
                more = self._fire_due()
                self._poll(more)
                while self._ready:
                    self._proceed(self._ready.popleft())
        finally:
            gc.enable()
            gc.unfreeze()
            self._close()

    def _fire_due(self) -> bool:
        heap = self._heap
        now = time.monotonic_ns()
        for _ in range(_BATCH):
            if not heap or heap[0][0] > now:
                return False
            due_ns, _, connection = heapq.heappop(heap)
            if connection.open:
                now = self._fire(connection, due_ns)
        return True

    def _poll(self, more: bool) -> None:
        if not (more or self._spin):
            wait_ns = self._heap[0][0] - time.monotonic_ns() if self._heap else _IDLE_NS
            wait_ns -= self._margin_ns
            if wait_ns > 0:
                # epoll_wait counts in ms; select on the epoll descriptor waits in microseconds.
                select.select([self._epoll], [], [], wait_ns / 1e9)
        for fd, mask in self._epoll.poll(0):
            connection = self._connections.get(fd)
            if connection is not None:
                self._on_event(connection, mask)
            elif fd in self._listeners:
                self._accept(self._listeners[fd])
            else:
                self._wake_read.recv(4096)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:  # none left, or the client left first
                return
            sock.setblocking(False)
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._serial += 1
            self._connections[sock.fileno()] = Connection(sock, self._serial)
            self._epoll.register(sock.fileno(), select.EPOLLIN)

    def _on_event(self, connection: Connection, mask: int) -> None:
        if mask & select.EPOLLOUT:
            self._fire(connection, connection.due_ns)
        if not connection.open or not mask & ~select.EPOLLOUT:
            return
        try:
            data = connection.sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return
        connection.inbox += data
        if connection.response is None:
            self._proceed(connection)
        elif len(connection.inbox) > _INBOX_BYTES:
            self._watch(connection, connection.mask & ~select.EPOLLIN)

    def _proceed(self, connection: Connection) -> None:
        """Start on the next request in the inbox, if one is complete."""
        if not connection.open or connection.response is not None:
            return
        received_ns, wall_s = time.monotonic_ns(), int(time.time())
        try:
            request = take(connection.inbox)
        except BadRequestError as error:
            self._start(connection, self._service.malformed(error, wall_s), received_ns)
            return
        if request is not None:
            response = self._service.answer(request, received_ns, wall_s)
            self._start(connection, response, received_ns)
        elif not connection.continued and expects_continue(connection.inbox):
            connection.continued = True
            connection.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _start(self, connection: Connection, response: Response, now_ns: int) -> None:
        connection.response = response
        connection.continued = False
        connection.piece = piece = next(response.pieces)
        connection.data = piece.data
        connection.due_ns = now_ns + piece.wait_ns
        if piece.wait_ns:
            heapq.heappush(self._heap, (connection.due_ns, connection.serial, connection))
        else:
            self._fire(connection, now_ns)

    def _fire(self, connection: Connection, due_ns: int) -> int:
        """Send what is due now, then set the timer for what follows; returns the time."""
        while True:
            data = connection.data
            now = time.monotonic_ns()
            if data:
                try:
                    sent = connection.sock.send(data)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    self._drop(connection)
                    return now
                if sent < len(data):
                    connection.data = memoryview(data)[sent:]
                    self._watch(connection, connection.mask | select.EPOLLOUT)
                    return now
                if connection.mask & select.EPOLLOUT:
                    self._watch(connection, connection.mask & ~select.EPOLLOUT)
            piece, response = connection.piece, connection.response
            if response is None:
                return now
            if piece.chunks and response.entry is not None:
                entry = response.entry
                for i in range(entry.sent, entry.sent + piece.chunks):
                    entry.due_ns[i] = due_ns
                    entry.sent_ns[i] = now
                entry.sent += piece.chunks
            if piece.then:
                self._finish(connection, response, piece.then, now)
                return now
            connection.piece = piece = next(response.pieces)
            connection.data = piece.data
            if piece.wait_ns:
                connection.due_ns = due_ns = due_ns + piece.wait_ns
                heapq.heappush(self._heap, (due_ns, connection.serial, connection))
                return now

    def _finish(self, connection: Connection, response: Response, then: int, now_ns: int) -> None:
        if then == STALL:
            self._service.stalled(response)
            return
        self._service.ended(response, now_ns, by_client=False)
        connection.response = None
        if then != RESET and not connection.mask & select.EPOLLIN:
            self._watch(connection, connection.mask | select.EPOLLIN)
        if then == DONE:
            if connection.inbox:
                self._ready.append(connection)
        elif then == CLOSE:
            # Half-close and read on: close() with unread bytes would send RST and destroy data.
            connection.inbox.clear()
            connection.response = Response(iter(()))
            connection.sock.shutdown(socket.SHUT_WR)
        elif then == RESET:
            linger = struct.pack("ii", 1, 0)
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._drop(connection)

    def _watch(self, connection: Connection, mask: int) -> None:
        connection.mask = mask
        self._epoll.modify(connection.sock.fileno(), mask)

    def _drop(self, connection: Connection) -> None:
        if connection.response is not None:
            self._service.ended(connection.response, time.monotonic_ns(), by_client=True)
            connection.response = None
        connection.open = False
        del self._connections[connection.sock.fileno()]
        self._epoll.unregister(connection.sock.fileno())
        connection.sock.close()

    def _close(self) -> None:
        for connection in list(self._connections.values()):
            self._drop(connection)
        for sock in (*self._listeners.values(), self._wake_read, self._wake_write):
            sock.close()
        self._epoll.close()
