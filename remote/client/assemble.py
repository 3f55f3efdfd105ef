"""From one worker's log to its requests, in index order, and the worker's account of itself.

Invariant: every BEGUN entry becomes exactly one Request. Held in memory at a time: the requests
under way, and those that wait for one with a lower index to end; 50 bytes a chunk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from records.measurement import Request
from remote.client import wire_log
from remote.client.histogram import Histogram
from remote.client.response import Response

Entry = tuple[int, int, int, bytes]


@dataclass(slots=True)
class Tally:
    """What a worker counted. `unstamped`: reads without a kernel stamp; clock offsets in ns."""

    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    chunks: int = 0
    merged: int = 0
    received_bytes: int = 0
    unstamped: int = 0
    lag: Histogram = field(default_factory=Histogram)
    late: Histogram = field(default_factory=Histogram)
    offset_low_ns: int = 0
    offset_high_ns: int = 0


class Assembler:
    """Reads a log once. `start_ns`, `ramp_end_ns`: CLOCK_MONOTONIC."""

    def __init__(self, start_ns: int, ramp_end_ns: int) -> None:
        self._start_ns, self._ramp_end_ns = start_ns, ramp_end_ns
        self._offset_ns: int | None = None
        self._current: dict[int, Response] = {}
        self._last_end_ns: dict[int, int] = {}
        self._order: deque[Response] = deque()
        self._scheduled: dict[int, int] = {}
        self.tally = Tally()

    def requests(self, entries: Iterable[Entry]) -> Iterator[Request]:
        """The requests of a log, in the order in which they were begun."""
        for kind, time_ns, realtime_ns, payload in entries:
            if kind >= 0:
                self._read(kind, time_ns, realtime_ns, payload)
            elif kind == wire_log.OFFSET:
                self._offset(wire_log.OFFSET_PAYLOAD.unpack(payload)[0])
            elif kind == wire_log.BEGUN:
                self._begun(*wire_log.BEGUN_PAYLOAD.unpack(payload))
            else:
                self._changed(kind, time_ns, payload)
            while self._order and self._order[0].ended:
                yield self._finished(self._order.popleft())

    def _read(self, number: int, time_ns: int, realtime_ns: int, data: bytes) -> None:
        tally = self.tally
        tally.received_bytes += len(data)
        stamp_ns = time_ns
        if realtime_ns and self._offset_ns is not None:
            stamp_ns = realtime_ns - self._offset_ns
            tally.lag.add(time_ns - stamp_ns)
        else:
            tally.unstamped += 1
        response = self._current.get(number)
        if response is not None:
            response.read(stamp_ns, data)
            self._settle(number, response)

    def _offset(self, offset_ns: int) -> None:
        tally = self.tally
        if self._offset_ns is None:
            tally.offset_low_ns = tally.offset_high_ns = offset_ns
        tally.offset_low_ns = min(tally.offset_low_ns, offset_ns)
        tally.offset_high_ns = max(tally.offset_high_ns, offset_ns)
        self._offset_ns = offset_ns

    def _begun(self, number: int, index: int, due_ns: int) -> None:
        response = Response(index, due_ns)
        self._order.append(response)
        self._current[number] = response
        # Closed loop: due when the connection's last request ended, the first at the start.
        due = self._last_end_ns.get(number, self._start_ns)
        self._scheduled[index] = due if due_ns < 0 else self._start_ns + due_ns

    def _changed(self, kind: int, time_ns: int, payload: bytes) -> None:
        size = wire_log.CONNECTION_PAYLOAD.size
        (number,) = wire_log.CONNECTION_PAYLOAD.unpack(payload[:size])
        response = self._current.get(number)
        if response is None:  # this parser found the end, or the fault, by itself
            return
        if kind == wire_log.SENT:
            response.sent_ns = time_ns
            if response.due_ns >= 0 or number in self._last_end_ns:
                self.tally.late.add(time_ns - self._scheduled[response.index])
        elif kind == wire_log.ENDED:
            response.end(time_ns)
        else:
            error, _, words = payload[size:].decode().partition("\0")
            response.fail(error, words, time_ns)
        self._settle(number, response)

    def _settle(self, number: int, response: Response) -> None:
        if response.ended:
            del self._current[number]
            self._last_end_ns[number] = response.end_ns

    def _finished(self, response: Response) -> Request:
        due = self._scheduled.pop(response.index)
        request = response.record(self._start_ns, self._ramp_end_ns, due)
        tally = self.tally
        tally.completed += request.outcome == "completed"
        tally.failed += request.outcome == "failed"
        tally.cancelled += request.outcome == "cancelled"
        tally.chunks += len(request.chunk_ns)
        tally.merged += len(request.merged)
        return request
