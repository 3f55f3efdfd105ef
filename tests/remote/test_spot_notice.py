"""A cloud's notice becomes an interruption with its reason; anything else changes nothing."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stop_signals import settled

from records.errors import InterruptedRunError
from remote import spot_notice
from remote.interruption import Interruption

ACTION = b'{"action": "terminate", "time": "2026-11-30T08:22:00Z"}'


class Metadata(http.server.BaseHTTPRequestHandler):
    """Both clouds' services; `plan` is what is announced."""

    plan: dict[str, tuple[int, bytes]]

    def do_PUT(self) -> None:
        self._answer(200 if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else 400, b"T0")

    def do_GET(self) -> None:
        aws = self.path == "/latest/meta-data/spot/instance-action"
        gcp = self.path == "/computeMetadata/v1/instance/preempted"
        if aws and self.headers["X-aws-ec2-metadata-token"] == "T0":
            self._answer(*self.plan["AWS"])
        elif gcp and self.headers["Metadata-Flavor"] == "Google":
            self._answer(*self.plan["GCP"])
        else:
            self._answer(401, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep quiet."""


@pytest.fixture
def metadata() -> Iterator[http.server.ThreadingHTTPServer]:
    Metadata.plan = {"AWS": (404, b""), "GCP": (200, b"FALSE")}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def interruption() -> Iterator[Interruption]:
    with settled(Interruption()) as installed:
        yield installed


def where(server: http.server.ThreadingHTTPServer) -> tuple[str, int]:
    return ("127.0.0.1", server.server_port)


@pytest.mark.parametrize(
    ("of", "answer", "words"),
    [
        (spot_notice.AWS, (200, ACTION), "terminate at 2026-11-30T08:22:00Z"),
        (spot_notice.GCP, (200, b"TRUE"), "preempted"),
    ],
)
def test_a_notice_stops_with_its_reason(metadata, interruption, of, answer, words) -> None:
    assert spot_notice.notice(of, where(metadata)) == ""
    with pytest.raises(InterruptedRunError, match="takes the machine back") as caught:
        spot_notice.watch(interruption.explain, of, where(metadata), period_s=0.01)
        Metadata.plan = {**Metadata.plan, of: answer}
        time.sleep(60)
    assert words in caught.value.message


@pytest.mark.parametrize("of", [spot_notice.AWS, spot_notice.GCP])
def test_a_service_that_is_not_there_announces_nothing(of: str) -> None:
    assert spot_notice.notice(of, ("127.0.0.1", 9)) == ""


@pytest.mark.parametrize(
    ("status", "body"), [(404, ACTION), (200, b"<html>"), (200, b"[]"), (200, b'{"action": "x"}')]
)
def test_what_is_no_notice_is_none(status: int, body: bytes) -> None:
    assert spot_notice.parse_aws(status, body) == ""
    assert spot_notice.parse_gcp(status, body) == ""


@pytest.mark.parametrize(
    ("vendor", "product", "of"),
    [
        ("Amazon EC2\n", "g6.xlarge\n", spot_notice.AWS),
        ("Google\n", "Google Compute Engine\n", spot_notice.GCP),
        ("QEMU\n", "Standard PC\n", ""),
        (None, None, ""),
    ],
)
def test_the_firmware_says_whose_machine_it_is(
    tmp_path: Path, vendor: str | None, product: str | None, of: str
) -> None:
    place = tmp_path / "sys/class/dmi/id"
    place.mkdir(parents=True)
    for name, text in (("sys_vendor", vendor), ("product_name", product)):
        if text is not None:
            (place / name).write_text(text)
    assert spot_notice.cloud(tmp_path) == of
