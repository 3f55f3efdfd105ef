"""Questions and answers between harness and keeper; the daemon's API against a stand-in."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from kit.planning.plan_file import load_plan
from records import canonical
from records.container_job import ContainerJob
from records.decode import to_object
from records.digest import Digest
from records.errors import BindingError, DockerError, RunBusyError
from records.image_digests import ImageDigests
from records.job import EngineOnHost, Job
from remote.container import attestation
from remote.container.docker_api import DaemonAwayError, DockerApi, unix_time
from remote.container.keeper import Keeper
from remote.container.keeper import main as contain
from remote.host_lock import sole_run

ROOT = Path(__file__).parents[2]
INDEX = Digest("c" * 64)
PATIENCE_S = 30


def engine(directory: Path) -> EngineOnHost:
    return EngineOnHost("docker", ("python3",), (), {}, "images.lock.json", INDEX, str(directory))


def answering(directory: Path, answer: dict[str, object]) -> threading.Thread:
    def work() -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if list(attestation.answer_all(directory, lambda: answer)):
                return
            time.sleep(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_an_answer_becomes_the_binding_and_nothing_is_left_behind(tmp_path: Path) -> None:
    thread = answering(tmp_path, {"digest": str(INDEX), "facts": {"docker": "27"}})
    bound = attestation.ask(engine(tmp_path), "before", print)
    thread.join()
    assert (bound.phase, bound.runtime, bound.digest) == ("before", "docker", INDEX)
    assert bound.facts == {"docker": "27"}
    assert list(tmp_path.iterdir()) == []


def test_a_difference_from_the_lock_is_a_binding_error(tmp_path: Path) -> None:
    thread = answering(tmp_path, {"problem": "image id: got A, want B"})
    with pytest.raises(BindingError, match="got A, want B"):
        attestation.ask(engine(tmp_path), "after", print)
    thread.join()


def test_an_old_answer_is_nobody_s_and_old_questions_are_forgotten(tmp_path: Path) -> None:
    (tmp_path / "answer-0123456789abcdef").write_text(json.dumps({"digest": "x"}))
    (tmp_path / "ask-0123456789abcdef").write_text(json.dumps({"phase": "before"}))
    attestation.clear(tmp_path)
    assert list(tmp_path.iterdir()) == []


class Daemon:
    """A unix socket that gives one canned HTTP answer a connection, and keeps what it was asked."""

    def __init__(self, path: Path, answers: list[bytes]) -> None:
        self.asked: list[bytes] = []
        self._answers = answers
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._socket.settimeout(PATIENCE_S)  # a client that gave up must not hold the test
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        with self._socket:
            for answer in self._answers:
                connection, _ = self._socket.accept()
                with connection, connection.makefile("rb") as reader:
                    self.asked.append(_request(reader))
                    connection.sendall(answer)


def _request(reader: BinaryIO) -> bytes:
    """Head and body, whole: a body left unread would reset the connection."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += reader.readline()
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return head + reader.read(int(length[1]) if length else 0)


def answer(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A short path for a socket."""
    before = Path.cwd()
    os.chdir(tmp_path)
    yield Path("d.sock")
    os.chdir(before)


def test_refusals_keep_the_daemon_s_words_and_say_what_helps(place: Path) -> None:
    words = b'{"message":"could not select device driver \\"\\" with capabilities: [[gpu]]"}'
    daemon = Daemon(place, [answer(201, b'{"Id":"abc"}'), answer(500, words), answer(404, b"{}")])
    api = DockerApi(str(place))
    assert api.create("kit-r", {"Image": "x"}) == "abc"
    with pytest.raises(DockerError, match="could not select device driver") as caught:
        api.start("abc")
    assert "nvidia-container-toolkit" in caught.value.remedy
    assert api.container("kit-r") is None
    daemon.thread.join()
    assert daemon.asked[0].startswith(b"POST /v1.41/containers/create?name=kit-r HTTP/1.1")
    assert daemon.asked[0].endswith(b'{"Image": "x"}')


def test_a_daemon_that_is_away_is_told_from_one_that_refuses(tmp_path: Path, place: Path) -> None:
    with pytest.raises(DaemonAwayError):
        DockerApi(str(tmp_path / "none.sock")).version()
    daemon = Daemon(place, [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ncut"])
    with pytest.raises(DaemonAwayError):
        DockerApi(str(place)).version()
    daemon.thread.join()


def test_output_is_read_from_both_streams_and_from_a_stamp_on(place: Path) -> None:
    line = b"2026-11-30T12:00:00.5Z boot b01: window c1\n"
    frames = b"".join(
        struct.pack(">BxxxL", kind, len(part)) + part
        for kind, part in ((1, line), (2, line[:20]), (2, line[20:]))
    )
    daemon = Daemon(place, [answer(200, frames)])
    found = list(DockerApi(str(place)).output("abc", "2026-11-30T12:00:00.25Z"))
    daemon.thread.join()
    assert found == [("2026-11-30T12:00:00.5Z", "boot b01: window c1")] * 2
    assert b"since=1796040000.250000000" in daemon.asked[0]
    assert unix_time("2026-11-30T12:00:00Z") == "1796040000.000000000"


def test_a_reason_told_outside_is_known_inside_and_only_for_this_harness(tmp_path: Path) -> None:
    inside = engine(tmp_path)
    assert attestation.reason_from_outside(inside) == ""
    attestation.tell_reason(tmp_path, "preempted: AWS takes the machine back")
    assert attestation.reason_from_outside(inside) == "preempted: AWS takes the machine back"
    attestation.clear(tmp_path)
    assert attestation.reason_from_outside(inside) == ""


REQUEST: dict[str, Any] = {"Image": "x", "Labels": {}}


def kept(socket_path: Path, place: Path) -> ContainerJob:
    image = ImageDigests(INDEX, INDEX, INDEX)
    return ContainerJob(str(socket_path), "kit-r", REQUEST, image, str(place), str(place / "s"), "")


def test_a_stop_that_finds_the_daemon_away_is_passed_on_when_it_is_back(
    tmp_path: Path, place: Path
) -> None:
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    keeper = Keeper(kept(place, exchange), DockerApi(str(place)), stopping=True)
    with pytest.raises(DaemonAwayError):
        keeper._answer_and_signal("abc")
    daemon = Daemon(place, [answer(204, b"")])
    keeper._answer_and_signal("abc")
    keeper._answer_and_signal("abc")
    daemon.thread.join()
    assert [asked.split()[1] for asked in daemon.asked] == [
        b"/v1.41/containers/abc/kill?signal=SIGTERM"
    ]


def test_a_container_is_not_begun_while_another_run_is_measured_on_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    for name, value in (("c.json", kept(tmp_path / "none.sock", exchange)), ("j.json", real_job())):
        (tmp_path / name).write_bytes(canonical.encode(to_object(value)))
    lock = tmp_path / "lock"
    monkeypatch.setenv("KIT_HOST_LOCK", str(lock))
    handlers = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        with sole_run("other", lock), pytest.raises(RunBusyError, match="run other is being"):
            contain(str(tmp_path / "c.json"), str(tmp_path / "j.json"))
        with pytest.raises(DaemonAwayError):  # now it gets as far as asking for the daemon
            contain(str(tmp_path / "c.json"), str(tmp_path / "j.json"))
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def real_job() -> Job:
    """The job of a plan that measures."""
    plan = load_plan(ROOT / "kit" / "plans" / "smoke-cpu.toml")
    return Job("r", plan, engine(Path("/kit/exchange")), {}, "/nowhere", "/nowhere", "s")
