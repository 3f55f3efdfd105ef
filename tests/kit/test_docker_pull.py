"""What a daemon says of a pull that failed: which of it another attempt may change."""

from __future__ import annotations

import pytest

from kit.docker.pull_words import is_final, remedy

# Docker 20.10 and 28, as they print it.
REFUSED = (
    'Get "http://127.0.0.1:9/v2/": dial tcp 127.0.0.1:9: connect: connection refused',
    (
        'Get "https://no-such.invalid/v2/": dial tcp: lookup no-such.invalid on 10.0.0.1:53: '
        "no such host"
    ),
    (
        'Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: '
        "Temporary failure in name resolution"
    ),
    (
        'Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on '
        "127.0.0.53:53: server misbehaving"
    ),
    'Get "https://203.0.113.1/v2/": dial tcp 203.0.113.1:443: connect: network is unreachable',
    'Get "https://m.example/v2/": x509: certificate signed by unknown authority',
    'Get "https://m.example/v2/": http: server gave HTTP response to HTTPS client',
    "write /var/lib/docker/tmp/GetImageBlob1: no space left on device",
    "manifest for docker.io/a/b@sha256:0 not found: manifest unknown: manifest unknown",
)
MAY_PASS = (
    "toomanyrequests: You have reached your pull rate limit.",
    "received unexpected HTTP status: 503 Service Unavailable",
    'Get "https://registry-1.docker.io/v2/": net/http: TLS handshake timeout',
    (
        'Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on '
        "127.0.0.53:53: read udp 127.0.0.1:5->127.0.0.53:53: i/o timeout"
    ),
    "unexpected EOF",
    "dial unix /var/run/docker.sock: connect: connection refused",
)


@pytest.mark.parametrize("problem", REFUSED)
def test_no_second_attempt_where_it_would_end_alike(problem: str) -> None:
    assert is_final(problem)


@pytest.mark.parametrize("problem", MAY_PASS)
def test_another_attempt_where_it_may_help(problem: str) -> None:
    assert not is_final(problem)


@pytest.mark.parametrize("problem", [*REFUSED, *MAY_PASS])
def test_each_has_a_remedy(problem: str) -> None:
    assert remedy(problem)


def test_digits_of_a_digest_are_no_status() -> None:
    digest = f"sha256:{'4290' * 16}"
    assert "docker login" not in remedy(f"manifest for a.example/b@{digest} not found")
    assert "docker login" in remedy('error parsing HTTP 429 response body: unexpected end: ""')
    assert "docker login" in remedy("toomanyrequests: You have reached your pull rate limit.")
