"""The receive loop: wait, read, stamp, append; all else is the dispatcher's and rare.

Invariant: nothing here waits but the wait for events and the nap, both ended by what is due.

Level-triggered epoll: edge triggering saved 5 % of the CPU time and would lose the wake-up for data
that one read left behind. While batches follow each other closely (above some 700 a second) the
loop naps for `NAP_NS` between them: the kernel has stamped what arrives meanwhile, sockets queue
it, one wake-up serves several chunks (14 -> 7 ms CPU per 1,000 chunks at 25,600 chunks/s), and the
server's sends wake nobody. A nap may delay the next request of a connection by as much, which
`late_send` reports; with few streams there are no naps.
"""

from __future__ import annotations

import select
import time

from remote.client import wire_log
from remote.client.dispatcher import Dispatcher
from remote.client.wire_log import ENTRY_BYTES, NO_STAMP, WireLog

NAP_NS = 500_000
_BUSY_PERIOD_NS = 1_500_000
_MAX_EVENTS = 256
_ANCILLARY_BYTES = 64
# select() takes microseconds where epoll takes milliseconds, but only descriptors below this.
_SELECT_LIMIT = 1024
_NS_PER_MS = 1_000_000


def receive(epoll: select.epoll, dispatcher: Dispatcher, log: WireLog) -> None:
    """Run until the dispatcher is `over`. DiskFullError if the log cannot be written."""
    by_fd, poll, monotonic, sleep = dispatcher.by_fd, epoll.poll, time.monotonic_ns, time.sleep
    pack, full_at, nap_s = wire_log.ENTRY.pack_into, log.full_at, NAP_NS / 1e9
    batch_ns = 0
    while True:
        now = monotonic()
        if now >= dispatcher.wake_ns:
            dispatcher.housekeep(now)
            if dispatcher.over:
                return
        if now - batch_ns < _BUSY_PERIOD_NS and dispatcher.wake_ns - now > NAP_NS:
            sleep(nap_s)
            events = poll(0, _MAX_EVENTS) or _wait(epoll, dispatcher.wake_ns)
        else:
            events = _wait(epoll, dispatcher.wake_ns)
        batch_ns = monotonic()
        buffer, view, used = log.buffer, log.view, log.used
        for fd, event in events:
            c = by_fd[fd]
            if event != 1:  # EPOLLIN and nothing else
                readable = dispatcher.special(c, event)
                buffer, view, used = log.buffer, log.view, log.used
                if not readable:
                    continue
            if used > full_at:
                log.rotate()
                buffer, view, used = log.buffer, log.view, log.used
            start = used + ENTRY_BYTES
            try:
                size, stamps, _, _ = c.receive([view[start:]], _ANCILLARY_BYTES)
            except OSError as error:
                dispatcher.broken(c, error)
            else:
                now = monotonic()
                if size:
                    pack(buffer, used, c.number, size, now, stamps[0][2] if stamps else NO_STAMP)
                    log.used = used = end = start + size
                    if c.left >= 0:
                        # Inside a chunked body: hop from one chunk-size line to the next.
                        start += c.left
                        while start < end:
                            line = buffer.find(b"\r\n", start, end)
                            try:
                                chunk = int(buffer[start:line], 16) if line > 0 else 0
                            except ValueError:
                                break
                            if chunk <= 0:
                                break
                            start = line + 4 + chunk
                        else:
                            c.left = start - end
                            continue
                        c.reader.at_size_line()
                    dispatcher.parse(c, bytes(buffer[start:end]), now)
                else:
                    dispatcher.closed_by_peer(c, now)
            buffer, view, used = log.buffer, log.view, log.used


def _wait(epoll: select.epoll, wake_ns: int) -> list[tuple[int, int]]:
    ahead_ns = wake_ns - time.monotonic_ns()
    if ahead_ns <= 0:
        return epoll.poll(0, _MAX_EVENTS)
    if ahead_ns > 2 * _NS_PER_MS or epoll.fileno() >= _SELECT_LIMIT:
        # epoll rounds up to milliseconds: ask for one less.
        return epoll.poll(max(ahead_ns - _NS_PER_MS, _NS_PER_MS) / 1e9, _MAX_EVENTS)
    select.select([epoll], [], [], ahead_ns / 1e9)
    return epoll.poll(0, _MAX_EVENTS)
