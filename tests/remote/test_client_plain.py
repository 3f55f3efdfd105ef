"""The plain client: whole windows against the reference server, stamped in user space."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from records.load import Load
from records.measurement import Request
from remote.client.plain import measure_plain
from remote.client.target import Target
from remote.reference.launch import Launched, launch

PATH = "/v1/completions"


class Bodies:
    """Bodies of eight tokens."""

    def body(self, index: int) -> bytes:
        return json.dumps(
            {
                "model": "synthetic",
                "prompt": f"request {index}",
                "max_tokens": 8,
                "stream": True,
                "return_token_ids": True,
                "stream_options": {"include_usage": True, "continuous_usage_stats": True},
                "reference": {"ttft": "2ms", "gap": "1ms"},
            }
        ).encode()


@pytest.fixture(scope="module")
def server() -> Iterator[Launched]:
    with launch(["--port", "0", "--margin", "0us"]) as launched:
        yield launched


def run(port: int, load: Load):
    found: list[Request] = []
    target = Target(PATH, port=port)
    return measure_plain(target, Bodies(), load, sink=found.extend, cpus=()), found


def test_every_request_is_there_once_and_says_that_it_was_stamped_in_user_space(server):
    result, found = run(server.port, Load("closed", 4, requests=13))
    assert [request.index for request in found] == list(range(13))
    assert {(request.outcome, sum(request.chunk_tokens)) for request in found} == {("completed", 8)}
    report = result.report
    assert (report.stamps, report.planned, report.completed, report.chunks) == (
        "user",
        13,
        13,
        sum(len(request.chunk_ns) for request in found),
    )
    assert (report.lag_p50_ns, report.lag_p99_ns) == (-1, -1)
    assert sum(request.ramp for request in found) == 3
    for request in found:
        assert 0 < request.first_byte_ns <= request.chunk_ns[0] <= request.end_ns
        assert list(request.chunk_ns) == sorted(request.chunk_ns)
        assert request.sent_ns + request.end_ns <= report.wall_ns


def test_a_window_ends_by_its_duration(server):
    result, found = run(server.port, Load("closed", 2, duration_ms=60))
    assert result.report.completed == len(found) > 2
    assert result.report.wall_ns >= 60_000_000


def test_what_the_server_refuses_is_a_failed_request_not_an_error(server):
    found: list[Request] = []
    measure_plain(
        Target("/v1/nothing", port=server.port),
        Bodies(),
        Load("closed", 1, requests=1),
        sink=found.extend,
        cpus=(),
    )
    assert [(request.outcome, request.error) for request in found] == [("failed", "http-status")]


def test_a_request_that_takes_too_long_has_failed(server):
    class Slow(Bodies):
        def body(self, index: int) -> bytes:
            body = json.loads(super().body(index))
            body["reference"] = {"ttft": "2s"}
            return json.dumps(body).encode()

    found: list[Request] = []
    measure_plain(
        Target(PATH, port=server.port),
        Slow(),
        Load("closed", 1, requests=1, timeout_ms=50),
        sink=found.extend,
        cpus=(),
    )
    assert [(request.outcome, request.error) for request in found] == [("failed", "timeout")]
