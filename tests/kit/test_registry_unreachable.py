"""A registry that cannot be reached: told at once where waiting helps nobody, asked again else."""

from __future__ import annotations

import datetime
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from registry_service import free_port

from kit.images import digest_of_tag, registry_at
from kit.main import main
from kit.registry import backoff, unreachable
from kit.registry.transfer import Transfer, open_http
from records.digest import Digest
from records.errors import RegistryError

DIGEST = "sha256:" + "c" * 64


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def asked(url: str) -> tuple[RegistryError, list[float]]:
    """The error that one question ends in, and the waits before it."""
    waits: list[float] = []
    with open_http() as http, pytest.raises(RegistryError) as caught:
        Transfer(http, waits.append, lambda _: None).get(url, {}, "the manifest", 1 << 20)
    return caught.value, waits


@contextmanager
def listening(answer: bytes, times: int) -> Iterator[int]:
    """A server that says this to whoever connects, and hangs up; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(times):
                client, _ = server.accept()
                with client:
                    client.recv(4096)
                    client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://no-such-registry.invalid/v2/", "does not resolve"),
        (f"http://127.0.0.1:{free_port()}/v2/", "connection refused"),
        ("https://a..b/v2/", "no such name can be"),
        (f"https://{'a' * 70}.invalid/v2/", "no such name can be"),
    ],
    ids=["no such name", "refused", "empty part", "long part"],
)
def test_what_waiting_does_not_change_is_told_at_once(url: str, words: str) -> None:
    error, waits = asked(url)
    assert words in error.message
    assert error.message.startswith("the manifest: ")
    assert "check the name" in error.remedy or "check name and port" in error.remedy
    assert waits == []


def test_a_server_without_tls_is_told_at_once() -> None:
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n", 1) as port:
        error, waits = asked(f"https://127.0.0.1:{port}/v2/")
    assert "speaks no TLS" in error.message
    assert waits == []


def self_signed() -> bytes:
    """A fresh key and a certificate that nobody but itself vouches for, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    certificate = (
        builder.not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + certificate.public_bytes(Encoding.PEM)


def test_a_certificate_of_nobodys_is_told_at_once(tmp_path: Path) -> None:
    certificate = tmp_path / "key-and-certificate.pem"
    certificate.write_bytes(self_signed())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client, pytest.raises(ssl.SSLError):
                context.wrap_socket(client, server_side=True)

        thread = threading.Thread(target=serve)
        thread.start()
        error, waits = asked(f"https://127.0.0.1:{server.getsockname()[1]}/v2/")
        thread.join()
    assert "certificate is not trusted here: self-signed certificate" in error.message
    assert "SSL_CERT_FILE" in error.remedy
    assert waits == []


def test_a_line_that_breaks_is_asked_again() -> None:
    with listening(b"", backoff.ATTEMPTS) as port:
        error, waits = asked(f"http://127.0.0.1:{port}/v2/")
    assert "6 times" in error.message
    assert waits == [1, 2, 4, 8, 16]


def test_redirects_in_circles_are_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    answer = f"HTTP/1.1 307 x\r\nLocation: http://127.0.0.1:{port}/\r\nContent-Length: 0\r\n"
    with socket.create_server(("127.0.0.1", port)) as server:

        def serve() -> None:
            for _ in range(6):
                client, _ = server.accept()
                with client:
                    client.recv(4096)
                    client.sendall(f"{answer}Connection: close\r\n\r\n".encode())

        thread = threading.Thread(target=serve)
        thread.start()
        error, waits = asked(f"http://127.0.0.1:{port}/v2/")
        thread.join()
    assert "redirects in circles" in error.message
    assert waits == []


@pytest.mark.parametrize(
    ("failure", "is_final"),
    [
        (httpx.ProxyError("403 Forbidden"), True),
        (httpx.ProxyError("429 Too Many Requests"), False),
        (httpx.ProxyError("502 Bad Gateway"), False),
        (httpx.ConnectTimeout("timed out"), False),
        (httpx.ReadError("[Errno 104] Connection reset by peer"), False),
        (OSError(101, "Network is unreachable"), True),
        (OSError(113, "No route to host"), True),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), True),
    ],
)
def test_which_failures_are_final(failure: Exception, is_final: bool) -> None:
    assert (unreachable.reason(failure) is not None) is is_final


def test_verify_without_a_network_ends_at_once_as_documented(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda s: pytest.fail(f"it waits {s} s"))
    image = {
        "registry": "no-such-registry.invalid", "repository": "vllm/vllm-openai",
        "released_as": "v1", "index_digest": DIGEST, "resolved": False, "platforms": {},
    }  # fmt: skip
    lock = tmp_path / "images.lock.json"
    lock.write_text(json.dumps({"format": 1, "images": {"one": image}}))
    assert main(["images", "verify", "--lock", str(lock)]) == RegistryError.exit_code
    told = capsys.readouterr().err
    assert "no-such-registry.invalid/vllm/vllm-openai:v1: the name does not resolve" in told
    assert "try: check the name" in told
    assert "--mirror HOST" in told


@pytest.mark.parametrize("mirror", ["bad host", "http://x", "[::1", "a..b", "mirror"])
def test_a_mirror_that_cannot_be_one_is_a_wrong_command_line(
    mirror: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["images", "verify", "--mirror", mirror]) == 2
    assert "host.example.org" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_what_is_for_loopback_goes_to_no_proxy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password may go there in clear, because it stays on this machine."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    with socket.create_server((name, 0)) as server:
        thread = threading.Thread(target=_answer_once, args=(server, answer))
        thread.start()
        registry = f"{name}:{server.getsockname()[1]}"
        with registry_at(registry, {}, lambda _: None) as at:
            assert digest_of_tag(at, "any", "tag") == Digest.of(b"hi")
        thread.join()


def _answer_once(server: socket.socket, answer: bytes) -> None:
    client, _ = server.accept()
    with client:
        client.recv(4096)
        client.sendall(answer)


def test_a_proxy_that_is_not_there_is_told_with_where_to_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
    error, waits = asked("https://registry.example/v2/")
    assert "connection refused" in error.message
    assert "HTTPS_PROXY" in error.remedy
    assert waits == []
