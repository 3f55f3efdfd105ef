"""Where requests go and the bytes that carry them.

Invariant: a request's bytes are a function of the target and the body; nothing else is added.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import Protocol

from records.errors import HostUnfitError

FAMILIES = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6, "unix": socket.AF_UNIX}
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\x20-\x7e]*")


class RequestSource(Protocol):
    """Where bodies come from. `body(i)` is the JSON of request i, the same at every call."""

    def body(self, index: int) -> bytes:
        """The body of request `index`; cheap, for it is called inside the window."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """One HTTP endpoint: `host` and `port`, or with family "unix" the socket at `unix_path`.

    `kernel_stamps` False: do without them, as on a kernel that gives none.
    """

    path: str
    host: str = "127.0.0.1"
    port: int = 0
    unix_path: str = ""
    family: str = "ipv4"
    headers: tuple[tuple[str, str], ...] = ()
    kernel_stamps: bool = True

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise HostUnfitError(f"address family {self.family!r} is none of {', '.join(FAMILIES)}")
        if re.fullmatch(r"/[\x21-\x7e]*", self.path) is None:
            raise HostUnfitError(f"not a request path: {self.path!r}")
        for name, value in self.headers:
            if _TOKEN.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
                raise HostUnfitError(f"not a header field: {name!r}")

    def address(self) -> tuple[str, int] | str:
        """What `connect` takes; the host name is resolved here, once. HostUnfitError if unknown."""
        if self.family == "unix":
            return self.unix_path
        try:
            found = socket.getaddrinfo(
                self.host, self.port, FAMILIES[self.family], socket.SOCK_STREAM
            )
        except socket.gaierror as error:
            raise HostUnfitError(f"host {self.host!r}: {error}") from error
        return str(found[0][4][0]), self.port

    def head(self) -> bytes:
        """The request head up to the fields that differ between requests."""
        host = "localhost" if self.family == "unix" else self.host
        if self.family == "ipv6":
            host = f"[{host}]"
        port = f":{self.port}" if self.port else ""
        lines = [
            f"POST {self.path} HTTP/1.1",
            f"Host: {host}{port}",
            "Accept: text/event-stream",
            "Content-Type: application/json",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        return "\r\n".join(lines).encode("ascii") + b"\r\n"


def request_bytes(head: bytes, index: int, body: bytes) -> bytes:
    """The whole request; `x-request-id` is the index, so that a server's log can be paired."""
    return b"%bx-request-id: %d\r\nContent-Length: %d\r\n\r\n%b" % (head, index, len(body), body)
