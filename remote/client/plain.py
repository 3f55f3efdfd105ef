"""A plain client of one event loop, for what it would have reported of the same server.

Invariant: it does what clients built on an event loop do: parse each event as it is read, and stamp
it then, in user space. Its requests are records like any other, but of a window that no quantity
uses except the comparison of clients.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable, Sequence

from records.load import Load
from records.measurement import Request
from remote.affinity import on_cpus
from remote.client.assemble import Tally
from remote.client.report import combine
from remote.client.response import Response
from remote.client.target import RequestSource, Target, request_bytes
from remote.client.window import WindowResult
from remote.client.worker import Account

_READ_BYTES = 1 << 16
_NS_PER_MS = 1_000_000


def measure_plain(
    target: Target,
    requests: RequestSource,
    load: Load,
    *,
    sink: Callable[[Sequence[Request]], None],
    cpus: Sequence[int],
) -> WindowResult:
    """Send a closed loop to `target` and give every request to `sink`, after the window."""
    with on_cpus(cpus):
        crew = _Crew(target, requests, load)
        cpu_ns = time.process_time_ns()
        start_ns = time.monotonic_ns()
        asyncio.run(crew.run(start_ns))
        wall_ns = time.monotonic_ns() - start_ns
        cpu_ns = time.process_time_ns() - cpu_ns
    found = sorted(crew.finished(start_ns), key=lambda request: request.index)
    tally = Tally(received_bytes=crew.received_bytes, unstamped=len(found))
    for request in found:
        tally.completed += request.outcome == "completed"
        tally.failed += request.outcome == "failed"
        tally.cancelled += request.outcome == "cancelled"
        tally.chunks += len(request.chunk_ns)
        tally.merged += len(request.merged)
    sink(found)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return WindowResult(start_ns, combine([Account(tally, cpu_ns, wall_ns, peak)]))


class _Crew:
    """One task a connection, all in one loop."""

    def __init__(self, target: Target, requests: RequestSource, load: Load) -> None:
        self.received_bytes = 0
        self._target, self._requests, self._load = target, requests, load
        self._head = target.head()
        self._next = 0
        self._ramp_end_ns = 0
        self._done: list[tuple[Response, int]] = []

    async def run(self, start_ns: int) -> None:
        """The whole window."""
        streams = [
            await asyncio.open_connection(self._target.host, self._target.port)
            for _ in range(self._load.concurrency)
        ]
        await asyncio.gather(
            *(self._stream(reader, writer, start_ns) for reader, writer in streams)
        )

    def finished(self, start_ns: int) -> list[Request]:
        """Every request, once the window is over."""
        return [
            response.record(start_ns, self._ramp_end_ns, due_ns) for response, due_ns in self._done
        ]

    async def _stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, start_ns: int
    ) -> None:
        due_ns = start_ns
        while not self._over(start_ns):
            index, self._next = self._next, self._next + 1
            response = Response(index, -1)
            self._done.append((response, due_ns))
            writer.write(request_bytes(self._head, index, self._requests.body(index)))
            response.sent_ns = time.monotonic_ns()
            if index < self._load.concurrency:
                self._ramp_end_ns = response.sent_ns
            timeout_s = self._load.timeout_ms / 1000
            try:
                await asyncio.wait_for(self._receive(reader, response), timeout_s)
            except asyncio.TimeoutError:
                response.fail("timeout", f"not whole after {timeout_s:g} s", time.monotonic_ns())
            except OSError as error:
                response.fail("connection", str(error), time.monotonic_ns())
            due_ns = response.end_ns
            if response.error:
                break
        writer.close()

    async def _receive(self, reader: asyncio.StreamReader, response: Response) -> None:
        while not response.ended:
            data = await reader.read(_READ_BYTES)
            stamp_ns = time.monotonic_ns()
            if not data:
                response.fail("connection", "closed by the server", stamp_ns)
                return
            self.received_bytes += len(data)
            response.read(stamp_ns, data)

    def _over(self, start_ns: int) -> bool:
        load = self._load
        if load.requests and self._next >= load.requests:
            return True
        late_ns = time.monotonic_ns() - start_ns
        return bool(load.duration_ms) and late_ns >= load.duration_ms * _NS_PER_MS
