"""What must not be published is found; measurements, versions and loopback are not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.leaks import leaks

SECRETS = (
    "hf_" + "a" * 34,
    "ghp_" + "A1" * 18,
    "github_pat_" + "a" * 40,
    "glpat-" + "a" * 20,
    "sk-" + "a" * 40,
    "nvapi-" + "a" * 60,
    "xoxb-" + "1" * 24,
    "AKIA" + "A" * 16,
    "-----BEGIN OPENSSH PRIVATE KEY-----",
)
NAMES = (
    ("someone@lab.university.edu", "e-mail address"),
    ("10.1.2.3", "address"),
    ("192.168.0.17:8000", "address"),
    ("8.8.8.8", "address"),
    ("2a01:4f8:c17:b0f::2", "address"),
    ("fe80::1ff:fe23:4567:890a", "address"),
    ("02:42:ac:11:00:02", "hardware address"),
    ("/home/someone/models", "home directory"),
    ("/Users/Someone/x", "home directory"),
    ("File /root/x.py", "home directory"),
    ("gpu-7.internal", "host name"),
    ("ip-10-1-2-3", "host name"),
    ("node3.local", "host name"),
)
NOTHING = (
    "127.0.0.1:8000",
    "0.0.0.0",
    "[::]:8000",
    "[::1]",
    "255.255.255.0",
    "192.0.2.7",
    "nvidia-cublas-cu12==12.8.4.1",
    '"version":"12.8.4.1"',
    "version 12.8.4.1",
    "std::vector<add::fed>",
    "11:43:55 [core.py:12]",
    "2026-11-30T11:43:55.123456",
    "repo/image@sha256:" + "a" * 64,
    "git@github.com",
    "a@example.org",
    "~/models",
    "<models>/root/x",
    "threading.local",
    "config.lang",
    "localhost.localdomain",
    "driver 550.54.15",
    "10.1145/3453483.3454083",
)


@pytest.mark.parametrize("text", SECRETS)
def test_secrets(text: str) -> None:
    (leak,) = leaks(f"x {text}\n".encode())
    assert leak.kind == "secret"
    assert leak.offset == 2
    assert text not in leak.shown


@pytest.mark.parametrize(("text", "kind"), NAMES)
def test_names(text: str, kind: str) -> None:
    assert {leak.kind for leak in leaks(f"at {text} now\n".encode())} == {kind}


@pytest.mark.parametrize("text", NOTHING)
def test_what_names_nobody(text: str) -> None:
    assert list(leaks(f"at {text} now\n".encode())) == []


@given(
    st.lists(st.integers(0, 10**13), max_size=50),
    st.text("abcdef0123456789", min_size=64, max_size=64),
)
def test_numbers_and_digests_name_nobody(numbers: list[int], digest: str) -> None:
    line = json.dumps({"chunk_ns": numbers, "digest": f"sha256:{digest}"}, separators=(",", ":"))
    assert list(leaks(line.encode())) == []
