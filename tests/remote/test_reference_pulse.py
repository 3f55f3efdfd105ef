"""The C server of the bench: no warnings, complete truth, bytes that parse as vLLM's."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "bench/pulse.c"
COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pulse") / "pulse"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([str(COMPILER), *flags, "-o", str(path), str(SOURCE)], check=True)
    return path


@contextmanager
def serving(binary: Path, *options: str) -> Iterator[int]:
    process = subprocess.Popen(
        [str(binary), "-p", "0", *options], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().rsplit(":", 1)[1])
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0


def call(port: int, method: str, path: str, body: str | None = None, name: str = "") -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with closing(connection):
        connection.request(method, path, body, {"x-request-id": name} if name else {})
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read()


def ask(tokens: int) -> str:
    return json.dumps({"prompt": "a", "max_tokens": tokens, "stream": True})


def truth(port: int) -> dict[str, list[int]]:
    lines = call(port, "GET", "/truth").decode().splitlines()
    return {line.split()[0]: [int(stamp) for stamp in line.split()[1:]] for line in lines}


def test_chunks_tokens_and_truth_agree(binary: Path) -> None:
    with serving(binary, "-g", "2000000", "-f", "0", "-k", "3", "-t", "1000000") as port:
        said = call(port, "POST", "/v1/completions", ask(12), "a")
        events = [json.loads(event) for event in re.findall(rb"data: (\{.*)\n\n", said)]
        assert [len(e["choices"][0]["token_ids"]) for e in events[:-1]] == [3, 3, 3, 3]
        assert [e["choices"][0]["finish_reason"] for e in events[:-1]] == [None] * 3 + ["length"]
        assert events[-1]["usage"]["completion_tokens"] == 12
        assert said.endswith(b"data: [DONE]\n\n")
        chat = call(port, "POST", "/v1/chat/completions", ask(3), "b")
        assert b'"delta":{"content":" pulse pulse pulse"}' in chat
        stamps = truth(port)
        assert [len(stamps["a"]), len(stamps["b"])] == [4, 1]
        gaps = [b - a for a, b in zip(stamps["a"], stamps["a"][1:], strict=False)]
        assert min(gaps) > 0
        assert b"generation_tokens_total" in call(port, "GET", "/metrics")
        summary = json.loads(call(port, "GET", "/truth/summary"))
        assert (summary["chunks"], summary["requests"], summary["dropped"]) == (5, 2, 0)
        call(port, "POST", "/truth/reset")
        assert truth(port) == {}
        assert call(port, "GET", "/health") == b""


def test_fixed_chunks_and_no_room_for_stamps(binary: Path) -> None:
    with serving(binary, "-g", "1000", "-f", "0", "-n", "7", "-s", "10", "-m", "lockstep") as port:
        for name in ("a", "b"):
            said = call(port, "POST", "/v1/completions", ask(100), name)
            assert said.count(b'"text":') == 7
        assert list(truth(port)) == ["a"]
        assert json.loads(call(port, "GET", "/truth/summary"))["dropped"] == 1


def test_pipelined_requests_and_a_slow_reader_lose_nothing(binary: Path) -> None:
    head = "POST /v1/completions HTTP/1.1\r\nhost: x\r\n"
    body = ask(20_000)
    one = f"{head}x-request-id: slow\r\ncontent-length: {len(body)}\r\n\r\n{body}"
    two = f"{head}x-request-id: last\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}"
    with serving(binary, "-g", "1", "-f", "0") as port, socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(20)
        sock.connect(("127.0.0.1", port))
        sock.sendall((one + two).encode())
        assert call(port, "GET", "/health") == b""
        said = bytearray()
        while data := sock.recv(65_536):
            said += data
        stamps = truth(port)
    assert said.count(b'"text":') == 20_016
    assert len(stamps["slow"]) == 20_000
    assert stamps["slow"] == sorted(stamps["slow"])
    assert len(stamps["last"]) == 16


def test_options_that_make_no_sense_are_refused(binary: Path) -> None:
    for options in (["-k", "0"], ["-g", "0"], ["-k", "65"], ["-x"]):
        done = subprocess.run([str(binary), *options], capture_output=True, check=False)
        assert done.returncode == 2
        assert done.stderr
