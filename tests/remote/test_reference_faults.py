"""Every fault as a client sees it on the socket, and what the truth and the counters say of it."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from records.errors import EngineBootError, ScheduleError
from remote.reference.faults import KINDS, Fault, parse_fault
from remote.reference.launch import Launched, launch
from remote.reference.main import main
from remote.reference.truth import Truth, decode

# Short, but long enough that two chunks rarely share a read.
SCHEDULE = ["--port", "0", "--ttft", "5ms", "--gap", "5ms", "--tokens", "cycle:1,3,1"]
USAGE = {"include_usage": True}


@pytest.fixture(scope="module")
def server() -> Iterator[Launched]:
    with launch(SCHEDULE) as launched:
        yield launched


def connect(server: Launched) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def post(name: str, header: Any = None, path: str = "/v1/completions", **body: Any) -> bytes:
    base: dict[str, Any] = {"prompt": "a b c", "max_tokens": 10, "stream": True}
    base |= {"return_token_ids": True, "stream_options": USAGE} | body
    data = json.dumps(base).encode()
    lines = [f"POST {path} HTTP/1.1", "host: x", f"x-request-id: {name}"]
    if header is not None:
        lines.append(f"x-reference: {json.dumps(header)}")
    lines.append(f"content-length: {len(data)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def read_to_end(sock: socket.socket, mark: bytes = b"\r\n0\r\n\r\n") -> tuple[bytes, str]:
    """All bytes up to the mark, and how the reading ended: mark, eof, reset or silence."""
    said = b""
    while not said.endswith(mark):
        try:
            data = sock.recv(65_536)
        except ConnectionResetError:
            return said, "reset"
        except TimeoutError:
            return said, "silence"
        if not data:
            return said, "eof"
        said += data
    return said, "mark"


def ask(server: Launched, name: str, fault: Any = None, **body: Any) -> tuple[bytes, str]:
    header = None if fault is None else {"fault": fault}
    with connect(server) as sock:
        sock.sendall(post(name, header, **body))
        if fault is not None and str(fault).startswith("stall"):
            sock.settimeout(2)
        return read_to_end(sock)


def get(server: Launched, path: str, method: str = "GET") -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    with closing(connection):
        connection.request(method, path)
        return connection.getresponse().read()


def truth_of(server: Launched, name: str, status: str = "") -> Truth:
    """The truth of one request, once the server has seen its end."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = {entry.request_id: entry for entry in decode(get(server, "/truth"))}
        if name in found and found[name].status == (status or found[name].status):
            return found[name]
        time.sleep(0.02)
    raise AssertionError(f"{name} never became {status}: {found.get(name)}")


def counter(server: Launched, name: str, **labels: str) -> int:
    text = get(server, "/metrics").decode()
    total = 0.0
    for line in text.splitlines():
        match = re.fullmatch(rf"vllm:{name}\{{(.*)\}} (\S+)", line)
        if match and all(f'{key}="{value}"' in match[1] for key, value in labels.items()):
            total += float(match[2])
    return int(total)


def chunks(said: bytes) -> int:
    return said.count(b'"text":"')


def test_without_fault_all_is_sent(server: Launched) -> None:
    said, end = ask(server, "plain")
    assert end == "mark"
    # 10 tokens by 1, 3, 1: 1 3 1 1 3 1.
    assert chunks(said) == 6
    assert said.count(b"data: [DONE]\n\n") == 1
    truth = truth_of(server, "plain", "complete")
    assert truth.tokens == (1, 3, 1, 1, 3, 1)
    assert len(truth.sent_ns) == len(truth.due_ns) == 6
    assert list(truth.sent_ns) == sorted(truth.sent_ns)
    assert all(sent >= due for sent, due in zip(truth.sent_ns, truth.due_ns, strict=True))
    assert truth.due_ns[0] == truth.received_ns + 5_000_000
    assert {b - a for a, b in zip(truth.due_ns, truth.due_ns[1:], strict=False)} == {5_000_000}
    assert truth.done_ns >= truth.sent_ns[-1]


def test_stall_never_continues(server: Launched) -> None:
    aborted = counter(server, "request_success_total", finished_reason="abort")
    said, end = ask(server, "stall", "stall:2")
    assert (end, chunks(said)) == ("silence", 2)
    truth = truth_of(server, "stall", "fault")
    assert truth.tokens == (1, 3)
    assert truth.faults == ("stall:2",)
    assert counter(server, "num_requests_running") == 0
    assert counter(server, "request_success_total", finished_reason="abort") == aborted + 1


def test_reset_is_a_reset(server: Launched) -> None:
    said, end = ask(server, "reset", "reset:2")
    assert (end, chunks(said)) == ("reset", 2)
    assert len(truth_of(server, "reset", "fault").sent_ns) == 2


def test_truncate_ends_inside_a_chunk(server: Launched) -> None:
    said, end = ask(server, "truncate", "truncate:2")
    assert end == "eof"
    last = said[said.rindex(b"\r\n") + 2 :]
    assert last.startswith(b"data: ")
    assert not last.endswith(b"\n\n")
    assert len(truth_of(server, "truncate", "fault").sent_ns) == 2


def test_drip_sends_single_bytes_and_stamps_the_last(server: Launched) -> None:
    plain, _ = ask(server, "same")
    with connect(server) as sock:
        sock.sendall(post("same", {"fault": "drip:50"}))
        reads = []
        said = b""
        while not said.endswith(b"\r\n0\r\n\r\n"):
            data = sock.recv(65_536)
            reads.append(len(data))
            said += data
    assert min(reads) == 1
    assert len(said) == len(plain)
    entries = [e for e in decode(get(server, "/truth")) if e.request_id == "same"]
    spans = [e.sent_ns[-1] - e.sent_ns[0] for e in entries]
    # Five chunks of over 200 bytes, 50 us between bytes, on top of the gaps.
    assert spans[1] >= entries[0].due_ns[-1] - entries[0].due_ns[0] + 5 * 200 * 50_000


@pytest.mark.parametrize(("code", "text"), [(429, "Too Many"), (500, "Internal"), (503, "Service")])
def test_status_is_answered_in_vllm_json(server: Launched, code: int, text: str) -> None:
    with connect(server) as sock:
        sock.sendall(post(f"status{code}", {"fault": f"status:{code}"}))
        said, _ = read_to_end(sock, b"}")
        while not said.endswith(b"}}"):
            said += sock.recv(65_536)
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {code} {text}".encode())
    error = json.loads(body)["error"]
    assert list(error) == ["message", "type", "param", "code"]
    assert error["code"] == code


def test_usage_lies_by_one(server: Launched) -> None:
    said, _ = ask(server, "lie", "wrong-usage")
    assert b'"completion_tokens":11}' in said
    assert sum(truth_of(server, "lie").tokens) == 10


def test_merged_chunks_share_one_send_and_one_stamp(server: Launched) -> None:
    said, _ = ask(server, "merge", "merge:2")
    assert chunks(said) == 6
    sent = truth_of(server, "merge", "complete").sent_ns
    assert sent[0::2] == sent[1::2]
    assert len(set(sent)) == 3


def test_missing_parts_are_missing(server: Launched) -> None:
    assert b"[DONE]" not in ask(server, "no-done", "no-done")[0]
    said, _ = ask(server, "no-usage", "no-usage")
    assert b'"usage"' not in said
    assert b"[DONE]" in said


def test_invalid_json_is_one_event(server: Launched) -> None:
    said, end = ask(server, "invalid", "invalid-json:2")
    assert end == "mark"
    events = re.findall(rb"data: (\{.*)\n\n", said)
    broken = []
    for i, event in enumerate(events):
        try:
            json.loads(event)
        except ValueError:
            broken.append(i)
    assert broken == [2]
    assert truth_of(server, "invalid").status == "complete"


def test_error_event_ends_the_stream(server: Launched) -> None:
    said, end = ask(server, "error", "error-event:2")
    assert (end, chunks(said)) == ("mark", 2)
    assert b'data: {"error":{"message":' in said
    assert truth_of(server, "error", "fault").tokens == (1, 3)


def test_forms_of_sse(server: Launched) -> None:
    crlf, _ = ask(server, "crlf", "crlf")
    assert crlf.count(b"}\r\n\r\n\r\n") == 7  # six chunks and the usage
    comment, _ = ask(server, "comment", "comment")
    assert comment.count(b": ping\n\n") == 6
    lines, _ = ask(server, "lines", "multi-line")
    first = re.findall(rb"((?:data: .*\n)+)\n", lines)[0]
    joined = b"\n".join(line[6:] for line in first.splitlines())
    assert first.count(b"data: ") == 2
    assert json.loads(joined)["choices"]


def test_content_length_frames_a_stream(server: Launched) -> None:
    with connect(server) as sock:
        sock.sendall(post("length", {"fault": "content-length"}))
        said, _ = read_to_end(sock, b"data: [DONE]\n\n")
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert f"content-length: {len(body)}".encode() in head
    assert chunks(said) == 6


@pytest.mark.parametrize("kind", ["connection-close", "until-close"])
def test_the_connection_ends_with_the_stream(server: Launched, kind: str) -> None:
    with connect(server) as sock:
        sock.sendall(post(kind, {"fault": kind}))
        said, end = read_to_end(sock, b"never")
    assert end == "eof"
    assert b"\r\nconnection: close\r\n" in said
    assert (b"transfer-encoding" in said) == (kind == "connection-close")
    assert truth_of(server, kind).status == "complete"


def test_early_stop(server: Launched) -> None:
    said, _ = ask(server, "stop", "stop:2")
    assert b'"finish_reason":"stop"' in said
    assert b'"completion_tokens":4}' in said
    assert truth_of(server, "stop", "complete").tokens == (1, 3)


def test_faults_combine_and_body_options_work(server: Launched) -> None:
    options = {"faults": ["crlf", "reset:1"], "tokens": [2], "gap": [1_000_000], "ttft": "1ms"}
    said, end = ask(server, "both", reference=options)
    assert (end, chunks(said)) == ("reset", 1)
    assert b"\r\n\r\n\r\n" in said
    assert truth_of(server, "both", "fault").tokens == (2,)


def test_a_client_that_leaves_is_an_abort(server: Launched) -> None:
    with connect(server) as sock:
        sock.sendall(post("leave", max_tokens=5000))
        while b'"text"' not in sock.recv(65_536):
            pass
    truth = truth_of(server, "leave", "aborted")
    assert 0 < len(truth.sent_ns) < 3000
    assert len(truth.sent_ns) == len(truth.tokens)


def test_options_that_do_not_decode_are_answered_400(server: Launched) -> None:
    for bad in ({"fault": "explode"}, {"speed": 1}, {"gap": "fast"}, {"output_tokens": 0}, [1]):
        with connect(server) as sock:
            sock.sendall(post("bad", reference=bad))
            sock.settimeout(20)
            assert sock.recv(65_536).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_fault_text_and_json_agree() -> None:
    assert parse_fault("stall:7") == parse_fault({"kind": "stall", "number": 7})
    assert parse_fault("stall") == Fault("stall", KINDS["stall"][0])
    for bad in (
        "stall:x",
        "nothing",
        {"kind": "stall", "more": 1},
        {"kind": "stall", "number": "1"},
    ):
        with pytest.raises(ScheduleError):
            parse_fault(bad)


def test_a_boot_that_fails_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EngineBootError, match="synthetic boot failure"), launch(["--fail-boot"]):
        pass
    assert main(["--gap", "fast"]) == ScheduleError.exit_code
    assert "20ms" in capfd.readouterr().err


def test_a_taken_port_is_named(server: Launched, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", str(server.port)]) == 21
    assert str(server.port) in capfd.readouterr().err


def test_a_unix_socket_path_is_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "reference.sock"
    with launch(["--unix", str(path), *SCHEDULE]) as launched:
        assert launched.addresses == (f"unix:{path}",)
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(20)
            sock.connect(str(path))
            sock.sendall(post("unix"))
            said, end = read_to_end(sock)
    assert (end, chunks(said)) == ("mark", 6)
    assert not path.exists()
