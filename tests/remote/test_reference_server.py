"""The reference server on real sockets: HTTP, routes, counters, truth, seeds, many streams."""

from __future__ import annotations

import http.client
import json
import re
import select
import signal
import socket
import subprocess
import sys
import zipapp
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from records.errors import FormatError
from remote.reference.launch import Launched, launch
from remote.reference.truth import MAGIC, Truth, TruthLog, decode

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests/fixtures/vllm-0.29.0/cpu/http"
SPECULATIVE = ["--ttft", "2ms", "--gap", "1ms", "--tokens", "accept:4:2.5", "--seed", "7"]
LONG_PROMPT = " ".join(f"word{i}" for i in range(40))


@pytest.fixture
def server() -> Iterator[Launched]:
    options = ["--port", "0", "--host", "127.0.0.1", "--served-model-name", "smol"]
    with launch([*options, "--max-model-len", "1024", *SPECULATIVE]) as launched:
        yield launched


def call(
    server: Launched, method: str, path: str, body: Any = None, name: str | None = None
) -> tuple[int, bytes]:
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"x-request-id": name} if name else {}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    with closing(connection):
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def tokens(server: Launched, name: str | None = None, **more: Any) -> bytes:
    body = {"model": "smol", "prompt": "a b c", "max_tokens": 20, "stream": True}
    status, said = call(server, "POST", "/v1/completions", body | more, name)
    assert status == 200
    return said


def truths(server: Launched) -> dict[str, Truth]:
    return {entry.request_id: entry for entry in decode(call(server, "GET", "/truth")[1])}


def metrics(server: Launched) -> dict[str, float]:
    text = call(server, "GET", "/metrics")[1].decode()
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def body_of(capture: str) -> bytes:
    return (CAPTURES / f"{capture}.http").read_bytes().partition(b"\r\n\r\n")[2]


def test_errors_are_those_of_the_captures(server: Launched) -> None:
    path = "/v1/completions"
    assert call(server, "GET", "/nothing") == (404, body_of("error-404"))
    assert call(server, "POST", path, {"model": "nope", "prompt": "a"}) == (
        404,
        body_of("error-unknown-model"),
    )
    long = {"model": "smol", "prompt": "a", "max_tokens": 5000}
    assert call(server, "POST", path, long) == (400, body_of("error-too-long"))
    assert call(server, "POST", path, b'{"model": ,') == (400, body_of("error-bad-json"))
    assert call(server, "GET", path)[0] == 405


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": ["a", "b"]},
        {"prompt": 3},
        {"prompt": "a", "max_tokens": 0},
        {"prompt": "a", "max_tokens": "many"},
        {"prompt": "a", "n": 2},
        {"prompt": list(range(1020)), "max_tokens": 16},
        [1],
        b"\xff",
    ],
)
def test_asks_it_cannot_serve_are_refused(server: Launched, body: Any) -> None:
    status, said = call(server, "POST", "/v1/completions", body)
    assert status == 400
    assert json.loads(said)["error"]["code"] == 400


def test_control_routes_have_the_shape_of_the_captures(server: Launched) -> None:
    assert call(server, "GET", "/health") == (200, b"")
    assert call(server, "POST", "/reset_prefix_cache") == (200, body_of("reset-prefix-cache"))
    ours, theirs = json.loads(call(server, "GET", "/v1/models")[1]), json.loads(body_of("models"))
    assert list(ours["data"][0]) == list(theirs["data"][0])
    assert list(ours["data"][0]["permission"][0]) == list(theirs["data"][0]["permission"][0])
    assert ours["data"][0]["max_model_len"] == theirs["data"][0]["max_model_len"] == 1024
    version = json.loads(call(server, "GET", "/version")[1])
    assert version == {"version": "0.29.0+synthetic"}


def test_counters_are_what_was_sent(server: Launched) -> None:
    options = {"include_usage": True}
    said = [tokens(server, f"r{i}", stream_options=options) for i in range(5)]
    told = [
        json.loads(re.findall(rb"data: (\{.*)\n", answer)[-1])["metrics"]["speculative_decoding"]
        for answer in said
    ]
    seen, label = metrics(server), '{engine="0",model_name="smol"}'
    assert seen[f"vllm:generation_tokens_total{label}"] == 100
    assert seen[f"vllm:prompt_tokens_total{label}"] == 15
    assert seen[f"vllm:prefix_cache_queries_total{label}"] == 15
    for name, key in (
        ("num_drafts", "num_spec_steps"),
        ("num_draft_tokens", "num_draft_tokens"),
        ("num_accepted_tokens", "num_accepted_draft_tokens"),
    ):
        assert seen[f"vllm:spec_decode_{name}_total{label}"] == sum(one[key] for one in told)
    per_position = [
        seen[
            "vllm:spec_decode_num_accepted_tokens_per_pos_total"
            f'{{engine="0",model_name="smol",position="{position}"}}'
        ]
        for position in range(4)
    ]
    steps = [accepted for one in told for accepted in one["per_step_accepted"]]
    assert per_position == [sum(1 for a in steps if a > position) for position in range(4)]
    finished = 'vllm:request_success_total{engine="0",finished_reason="length",model_name="smol"}'
    assert seen[finished] == 5
    truth = truths(server)
    assert sum(sum(entry.tokens) for entry in truth.values()) == 100
    assert all(sum(e.tokens) == 20 and e.status == "complete" for e in truth.values())
    gaps = sum(len(entry.sent_ns) - 1 for entry in truth.values())
    assert seen[f"vllm:inter_token_latency_seconds_count{label}"] == gaps


def test_metric_names_and_labels_are_those_of_vllm(server: Launched) -> None:
    tokens(server)
    theirs = body_of("metrics").decode()
    for line in call(server, "GET", "/metrics")[1].decode().splitlines():
        if line.startswith("# "):
            assert line in theirs
            continue
        name, _, labels = line.rsplit(" ", 1)[0].partition("{")
        keys = re.findall(r'(\w+)="', labels)
        theirs_keys = [
            re.findall(r'(\w+)="', found)
            for found in re.findall(rf"^{name}\{{(.*?)\}} ", theirs, re.M)
        ]
        assert keys in theirs_keys, line


def test_prefix_cache_hits_whole_blocks_until_reset(server: Launched) -> None:
    name = 'vllm:prefix_cache_hits_total{engine="0",model_name="smol"}'
    tokens(server, prompt=LONG_PROMPT)
    assert metrics(server)[name] == 0
    tokens(server, prompt=LONG_PROMPT)
    assert metrics(server)[name] == 32
    call(server, "POST", "/reset_prefix_cache")
    tokens(server, prompt=LONG_PROMPT)
    assert metrics(server)[name] == 32


def test_unstreamed_answers_come_whole_at_the_end(server: Launched) -> None:
    said = json.loads(tokens(server, "whole", stream=False, return_token_ids=True))
    assert said["usage"]["completion_tokens"] == 20 == len(said["choices"][0]["token_ids"])
    truth = truths(server)["whole"]
    assert truth.tokens == (20,)
    assert truth.due_ns[0] - truth.received_ns >= 2_000_000
    assert metrics(server)['vllm:generation_tokens_total{engine="0",model_name="smol"}'] == 20


def test_the_same_seed_gives_the_same_streams_in_any_order(server: Launched) -> None:
    names = ["a", "b", "c"]
    first = {name: tokens(server, name, return_token_ids=True) for name in names}
    options = ["--port", "0", "--served-model-name", "smol", *SPECULATIVE]
    with launch(options) as other:
        second = {name: tokens(other, name, return_token_ids=True) for name in reversed(names)}
        ours, theirs = truths(server), truths(other)
    created = re.compile(rb'"created":\d+')
    for name in names:
        assert created.sub(b"", first[name]) == created.sub(b"", second[name])
        assert ours[name].tokens == theirs[name].tokens
        waits = [[due - e.received_ns for due in e.due_ns] for e in (ours[name], theirs[name])]
        assert waits[0] == waits[1]


def test_truth_is_one_in_both_forms_and_forgets_on_reset(server: Launched) -> None:
    for name in ("a", "b"):
        tokens(server, name)
    binary = call(server, "GET", "/truth?format=binary")[1]
    assert binary.startswith(MAGIC)
    assert decode(binary) == decode(call(server, "GET", "/truth")[1])
    summary = json.loads(call(server, "GET", "/truth/summary")[1])
    assert summary["requests"] == 2
    assert summary["chunks"] == sum(len(entry.sent_ns) for entry in decode(binary))
    assert 0 <= summary["late_p50_ns"] <= summary["late_p99_ns"] <= summary["late_max_ns"]
    assert summary["dropped"] == summary["open"] == 0
    call(server, "POST", "/truth/reset")
    assert call(server, "GET", "/truth") == (200, b"")
    with pytest.raises(FormatError):
        decode(binary[:-3])
    with pytest.raises(FormatError):
        decode(b'{"request_id": 1}')


def test_truth_without_room_counts_what_it_drops() -> None:
    log = TruthLog(3)
    log.open("a", 0, [1, 1], [])
    spare = log.open("b", 0, [1, 1], [])
    spare.sent_ns[1] = 5
    assert log.summary()["dropped"] == 1
    assert [entry.request_id for entry in log.entries] == ["a"]
    log.reset()
    log.open("c", 0, [1, 1, 1], [])
    assert log.dropped == 0


def test_requests_split_anywhere_and_pipelined_are_answered_in_order(server: Launched) -> None:
    ask = json.dumps({"prompt": "a", "max_tokens": 3, "stream": True}).encode()
    request = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(ask)
    parts = [ask[:10], ask[10:]]
    chunked = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    also = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    last = b"GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    stream = request + ask + also + chunked + last
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        for i in range(0, len(stream), 61):
            sock.sendall(stream[i : i + 61])
        said = b""
        while data := sock.recv(65_536):
            said += data
    assert said.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert said.count(b"data: [DONE]") == 2
    assert said.endswith(b'{"version":"0.29.0+synthetic"}')


def test_a_client_waiting_for_continue_is_told_once(server: Launched) -> None:
    ask = json.dumps({"prompt": "a", "max_tokens": 1}).encode()
    head = b"POST /v1/completions HTTP/1.1\r\nexpect: 100-continue\r\nconnection: close\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.sendall(head + b"content-length: %d\r\n\r\n" % len(ask))
        assert sock.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(ask)
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"HELLO\r\n\r\n", b"400"),
        (b"GET / HTTP/3\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"x" * 70_000, b"431"),
    ],
)
def test_bytes_that_are_no_request_end_the_connection(
    server: Launched, sent: bytes, status: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.sendall(sent)
        said = b""
        while data := sock.recv(65_536):
            said += data
    assert said.startswith(b"HTTP/1.1 " + status)
    assert call(server, "GET", "/health")[0] == 200


def test_ipv4_and_ipv6_on_one_port() -> None:
    hosts = ["--host", "127.0.0.1", "--host", "::1"]
    with launch(["--port", "0", *hosts]) as launched:
        assert launched.addresses == (
            f"http://127.0.0.1:{launched.port}",
            f"http://[::1]:{launched.port}",
        )
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, launched.port), timeout=20) as sock:
                sock.sendall(b"GET /health HTTP/1.1\r\n\r\n")
                assert sock.recv(4096).startswith(b"HTTP/1.1 200 OK")


def test_a_slow_reader_gets_every_byte() -> None:
    options = ["--port", "0", "--ttft", "0ns", "--gap", "0ns", "--tokens", "8"]
    with launch(options) as launched, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(20)
        sock.connect(("127.0.0.1", launched.port))
        ask = json.dumps({"prompt": "a", "max_tokens": 30_000, "stream": True}).encode()
        head = "POST /v1/completions HTTP/1.1\r\nx-request-id: slow\r\nconnection: close\r\n"
        sock.sendall(f"{head}content-length: {len(ask)}\r\n\r\n".encode() + ask)
        # While this reader is not reading, others are served.
        assert call(launched, "GET", "/health") == (200, b"")
        said = bytearray()
        while data := sock.recv(65_536):
            said += data
        truth = truths(launched)["slow"]
    assert said.count(b'"text":"') == len(truth.sent_ns) == 3750
    assert list(truth.sent_ns) == sorted(truth.sent_ns)


def test_lockstep_streams_share_the_beat_and_none_is_lost() -> None:
    n = 200
    options = ["--port", "0", "--ttft", "10ms", "--gap", "lockstep:20ms"]
    ask = json.dumps({"prompt": "a", "max_tokens": 10, "stream": True}).encode()
    with launch(options) as launched, ExitStack() as stack:
        socks, said = {}, {}
        poller = stack.enter_context(select.epoll())
        for i in range(n):
            sock = socket.create_connection(("127.0.0.1", launched.port), timeout=20)
            stack.enter_context(sock)
            head = f"POST /v1/completions HTTP/1.1\r\nx-request-id: r{i}\r\n"
            sock.sendall(f"{head}content-length: {len(ask)}\r\n\r\n".encode() + ask)
            poller.register(sock.fileno(), select.EPOLLIN)
            socks[sock.fileno()], said[sock.fileno()] = sock, b""
        open_streams = n
        while open_streams:
            for fd, _ in poller.poll(20):
                data = socks[fd].recv(65_536)
                assert data
                said[fd] += data
                open_streams -= said[fd].endswith(b"\r\n0\r\n\r\n")
        truth = truths(launched)
    assert all(answer.count(b'"text":"') == 10 for answer in said.values())
    assert len(truth) == n
    assert {due % 20_000_000 for entry in truth.values() for due in entry.due_ns} == {0}
    assert all(len(entry.sent_ns) == 10 for entry in truth.values())


def test_it_runs_from_a_zip_and_stops_on_sigint(tmp_path: Path) -> None:
    source, archive = tmp_path / "source", tmp_path / "harness.pyz"
    for folder in ("records", "remote/reference"):
        for path in (ROOT / folder).glob("*.py"):
            target = source / folder / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (source / "remote/__init__.py").write_bytes((ROOT / "remote/__init__.py").read_bytes())
    (source / "__main__.py").write_text(
        "import sys\nfrom remote.reference.main import main\nsys.exit(main(sys.argv[2:]))\n"
    )
    zipapp.create_archive(source, archive)
    command = [sys.executable, "-I", str(archive), "reference", "--port", "0", "--spin"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if "Application startup complete" in line:
            break
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert any("SYNTHETIC" in line for line in said)
    assert "stopped" in rest
