"""Whole windows against the reference server: loads, faults, sockets, captures."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from records.load import Load
from records.measurement import ClientReport
from remote.client.schedule import due_times
from remote.client.window import Target
from remote.reference.launch import Launched, launch
from remote.reference.truth import Truth, decode
from tests.remote.measured_window import FAST, Bodies, reference_server, window

CAPTURES = Path(__file__).parents[1] / "fixtures/vllm-0.29.0/cpu/http"


@pytest.fixture(scope="module")
def server() -> Iterator[Launched]:
    with reference_server() as launched:
        yield launched


def truths(port: int) -> dict[str, Truth]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", "/truth")
        return {entry.request_id: entry for entry in decode(connection.getresponse().read())}


def reset(port: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("POST", "/truth/reset")
        connection.getresponse().read()


def test_a_closed_loop_stamps_after_the_truth_and_reuses_connections(
    server: Launched, tmp_path: Path
) -> None:
    reset(server.port)
    requests, result = window(server.port, Load("closed", 4, requests=20), tmp_path)
    truth = truths(server.port)
    assert [r.index for r in requests] == list(range(20))
    assert {r.outcome for r in requests} == {"completed"}
    for request in requests:
        sent = truth[str(request.index)].sent_ns
        assert len(sent) == len(request.chunk_ns) == 8
        origin = result.start_ns + request.sent_ns
        # the kernel's clock mapping is good to a microsecond
        assert all(origin + c + 1_000 > s for c, s in zip(request.chunk_ns, sent, strict=True))
        assert list(request.chunk_ns) == sorted(request.chunk_ns)
        assert 0 <= request.scheduled_ns <= request.sent_ns
        assert 0 < request.first_byte_ns <= request.chunk_ns[0] <= request.end_ns
    assert result.report.stamps == "kernel"
    assert result.report.lag_max_ns >= result.report.lag_p50_ns > 0
    assert 0 < result.report.cpu_ns < result.report.wall_ns
    assert sum(r.ramp for r in requests) >= 4
    assert not requests[-1].ramp


@pytest.mark.parametrize("kind", ["constant", "poisson", "burst"])
def test_an_open_loop_is_sent_when_due_and_counts_from_there(
    server: Launched, tmp_path: Path, kind: str
) -> None:
    load = Load(kind, 4, rate_millihertz=100_000, requests=24)
    requests, _ = window(server.port, load, tmp_path)
    assert [r.scheduled_ns for r in requests] == list(due_times(load, 1))
    assert all(r.sent_ns >= r.scheduled_ns for r in requests)
    assert {r.outcome for r in requests} == {"completed"}


def test_a_request_that_waits_for_a_connection_keeps_its_due_time(
    server: Launched, tmp_path: Path
) -> None:
    load = Load("constant", 1, rate_millihertz=1_000_000, requests=5)
    bodies = Bodies(lambda _: {"ttft": "30ms", "gap": "1ms"}, 1)
    requests, _ = window(server.port, load, tmp_path, bodies)
    assert [r.scheduled_ns for r in requests] == [i * 1_000_000 for i in range(5)]
    assert all(b.sent_ns >= a.sent_ns + a.end_ns for a, b in pairwise(requests))


FAULTS = [
    ("stall:3", "timeout", 3),
    ("reset:3", "reset", 3),
    ("truncate:3", "truncated", 3),
    ("error-event:3", "server-error", 3),
    ("invalid-json:3", "bad-event", 7),
    ("status:429", "http-status", 0),
    ("status:500", "http-status", 0),
    ("wrong-usage:1", "usage-mismatch", 8),
    ("no-done", "truncated", 8),
]
HARMLESS = [
    "drip:0", "merge:3", "no-usage", "crlf", "comment", "multi-line", "content-length",
    "connection-close", "until-close",
]  # fmt: skip


@pytest.mark.parametrize(("fault", "error", "chunks"), FAULTS)
def test_a_fault_is_named_and_its_chunks_kept(
    server: Launched, tmp_path: Path, fault: str, error: str, chunks: int
) -> None:
    bodies = Bodies(lambda i: FAST | ({"fault": fault} if i % 3 == 1 else {}))
    load = Load("closed", 2, requests=9, timeout_ms=400)
    requests, result = window(server.port, load, tmp_path, bodies)
    assert result.report.planned == 9
    for request in requests:
        if request.index % 3 == 1:
            assert (request.outcome, request.error) == ("failed", error), request.detail
            assert len(request.chunk_ns) == chunks
        else:
            assert (request.outcome, request.detail) == ("completed", "")


@pytest.mark.parametrize("fault", HARMLESS)
def test_what_is_odd_but_right_completes(server: Launched, tmp_path: Path, fault: str) -> None:
    bodies = Bodies(lambda _: FAST | {"fault": fault})
    requests, result = window(server.port, Load("closed", 2, requests=6), tmp_path, bodies)
    assert [(r.outcome, r.error, r.detail) for r in requests] == [("completed", "", "")] * 6
    assert all(r.chunk_tokens == (1,) * 8 for r in requests)
    if fault == "merge:3":
        assert all(set(r.merged) >= {0, 1, 3, 4, 6} for r in requests)
        assert result.report.merged >= 30


def test_single_bytes_arrive_as_chunks(server: Launched, tmp_path: Path) -> None:
    bodies = Bodies(lambda _: FAST | {"fault": "drip:100"}, 2)
    requests, _ = window(server.port, Load("closed", 1, requests=1), tmp_path, bodies)
    assert (requests[0].outcome, len(requests[0].chunk_ns)) == ("completed", 2)


@pytest.mark.parametrize("kind", ["closed", "poisson"])
def test_nothing_vanishes_whatever_goes_wrong(server: Launched, tmp_path: Path, kind: str) -> None:
    names = [name for name, _, _ in FAULTS] + HARMLESS + [""]
    bodies = Bodies(lambda i: FAST | ({"fault": f} if (f := names[i % len(names)]) else {}))
    rate = 0 if kind == "closed" else 200_000
    load = Load(kind, 5, rate_millihertz=rate, requests=60, timeout_ms=300)
    requests, result = window(server.port, load, tmp_path, bodies)
    assert [r.index for r in requests] == list(range(60))
    assert result.report.planned == 60
    assert result.report.failed == sum(i % len(names) < len(FAULTS) for i in range(60))


def test_a_duration_cancels_what_is_in_flight(server: Launched, tmp_path: Path) -> None:
    bodies = Bodies(lambda _: {"ttft": "5ms", "gap": "20ms"}, 10_000)
    load = Load("closed", 3, duration_ms=800)
    requests, result = window(server.port, load, tmp_path, bodies)
    assert [(r.outcome, r.error) for r in requests] == [("cancelled", "cancelled")] * 3
    assert all(r.chunk_ns for r in requests)
    assert result.report.wall_ns >= 800_000_000


def test_requests_due_but_never_sent_are_cancelled(server: Launched, tmp_path: Path) -> None:
    bodies = Bodies(lambda _: {"ttft": "5ms", "gap": "20ms"}, 10_000)
    load = Load("constant", 2, rate_millihertz=100_000, duration_ms=100)
    requests, _ = window(server.port, load, tmp_path, bodies)
    assert [r.index for r in requests] == list(range(10))
    assert {r.outcome for r in requests} == {"cancelled"}
    assert [r.sent_ns for r in requests[2:]] == [-1] * 8


@pytest.mark.parametrize("kind", ["closed", "constant"])
def test_a_server_that_is_not_there(tmp_path: Path, kind: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    rate = 0 if kind == "closed" else 1_000_000
    load = Load(kind, 2, rate_millihertz=rate, requests=4)
    requests, _ = window(port, load, tmp_path)
    assert [(r.outcome, r.error) for r in requests] == [("failed", "connect")] * 4
    assert all(r.sent_ns == -1 for r in requests)


def test_ipv6(server: Launched, tmp_path: Path) -> None:
    port = int(server.addresses[1].rsplit(":", 1)[1]) if len(server.addresses) > 1 else server.port
    target = Target("/v1/completions", host="::1", port=port, family="ipv6")
    requests, result = window(0, Load("closed", 2, requests=4), tmp_path, target=target)
    assert {r.outcome for r in requests} == {"completed"}
    assert result.report.stamps == "kernel"


def test_a_unix_socket_has_no_kernel_stamps_and_says_so(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with launch(["--unix", path]):
        target = Target("/v1/completions", unix_path=path, family="unix")
        requests, result = window(0, Load("closed", 2, requests=4), tmp_path, target=target)
    assert {r.outcome for r in requests} == {"completed"}
    assert (result.report.stamps, result.report.lag_max_ns) == ("user", -1)


@contextmanager
def replaying(name: str, speed: int) -> Iterator[int]:
    """A server that answers each connection with a capture, read by read at its times / speed."""
    data = (CAPTURES / f"{name}.http").read_bytes()
    reads = json.loads((CAPTURES / f"{name}.reads.json").read_text())
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if not connection.recv(1 << 16):
                    continue
                start, at = time.monotonic_ns(), 0
                for ns, size in reads:
                    time.sleep(max(start + ns // speed - time.monotonic_ns(), 0) / 1e9)
                    connection.sendall(data[at : at + size])
                    at += size

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@pytest.mark.parametrize(
    ("name", "error", "tokens"),
    [
        ("completions-continuous-usage", "", 48),
        ("chat-usage", "", 48),
        ("stop-early", "", -1),
        ("completions-no-token-ids", "no-token-counts", 0),
        ("engine-killed-mid-stream", "truncated", -1),
        ("error-too-long", "http-status", 0),
        ("error-404", "http-status", 0),
        ("chat-not-streamed", "bad-event", 0),
    ],
)
def test_captures_through_a_real_socket(tmp_path: Path, name: str, error: str, tokens: int) -> None:
    with replaying(name, speed=50) as port:
        requests, _ = window(port, Load("closed", 1, requests=2), tmp_path)
    assert [r.error for r in requests] == [error] * 2
    if tokens > 0:
        assert [sum(r.chunk_tokens) for r in requests] == [tokens] * 2
    elif tokens < 0:
        assert all(r.chunk_ns for r in requests)


def test_a_large_request_is_sent_in_parts(server: Launched, tmp_path: Path) -> None:
    class Large(Bodies):
        def body(self, index: int) -> bytes:
            value = json.loads(super().body(index))
            return json.dumps(value | {"user": "x" * 8_000_000}).encode()

    requests, _ = window(server.port, Load("closed", 1, requests=1), tmp_path, Large())
    assert requests[0].sent_ns >= 0
    assert requests[0].status in (200, 400, 413)


def test_an_idle_connection_that_the_server_closes_is_replaced(tmp_path: Path) -> None:
    data = (CAPTURES / "stop-early.http").read_bytes().replace(b"connection: close\r\n", b"")
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            for _ in range(2):  # one request a connection, then a close nobody announced
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(data)

        listener.settimeout(20)
        thread = threading.Thread(target=serve)
        thread.start()
        # Two seconds apart: on a starved machine the close is still seen before the next is due.
        load = Load("constant", 1, rate_millihertz=500, requests=2)
        requests, _ = window(listener.getsockname()[1], load, tmp_path)
        thread.join()
    assert [r.outcome for r in requests] == ["completed"] * 2


def test_a_report_is_whole(server: Launched, tmp_path: Path) -> None:
    _, result = window(server.port, Load("closed", 1, requests=2), tmp_path)
    assert isinstance(result.report, ClientReport)
    assert result.report.clock_step_ns < 1_000_000
