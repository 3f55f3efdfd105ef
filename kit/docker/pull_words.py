"""What a daemon says of a pull that failed: whether another attempt may help, and what else does.

Invariant: pure. The words are those of moby's distribution code and of Go's net, crypto/tls and
net/http; what is not known is tried again.
"""

from __future__ import annotations

import re

from kit.registry import credentials

# Of refused connections only those to a registry: a daemon that is restarted refuses, too.
_UNREACHABLE = (
    r"lookup \S+.*: (no such host|.*name resolution|server misbehaving)",
    r"dial tcp \S+ connect: (connection refused|network is unreachable|no route to host)",
    r"x509: |server gave http response to https client",
)
_REFUSED = ("denied", "unauthorized", "no basic auth", "http 401 response", "http 403 response")
_ABSENT = ("not found", "manifest unknown", "http 404 response")
_BUSY = ("toomanyrequests", "http 429", "429 too many", "status: 429")
_OTHER_BYTES = "verification failed for digest"
_FULL = "no space left"


def is_final(problem: str) -> bool:
    """Whether the same pull again within seconds would end alike."""
    text = problem.lower()
    final = (*_REFUSED, *_ABSENT, _OTHER_BYTES, _FULL)
    return any(word in text for word in final) or _is_unreachable(text)


def is_other_bytes(problem: str) -> bool:
    """Whether the registry served bytes of another digest than it was asked for."""
    return _OTHER_BYTES in problem.lower()


def remedy(problem: str) -> str:
    """What to do about it."""
    text = problem.lower()
    if _FULL in text:
        return "free space under DockerRootDir (docker system df), or rent a larger disk"
    if any(word in text for word in _BUSY):
        return "docker login, or another registry with the same digest: --mirror HOST"
    if any(word in text for word in _REFUSED):
        return f"docker login, or set {credentials.USER} and {credentials.PASSWORD}"
    if any(word in text for word in _ABSENT):
        return "check what the registry holds, kit images verify; or: --mirror HOST"
    if _is_unreachable(text):
        return "check the host's network and the daemon's proxy (docker info); or: --mirror HOST"
    return "start the same command again: layers that are there are kept; or: --mirror HOST"


def _is_unreachable(text: str) -> bool:
    return any(re.search(pattern, text) for pattern in _UNREACHABLE)
