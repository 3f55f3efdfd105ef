"""HTTP/1.1 requests out of a byte stream, split anywhere and pipelined.

Invariant: `take` consumes whole requests only, so the bytes behind one stay for the next call.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_HEAD_BYTES = 65_536
MAX_BODY_BYTES = 64 * 1024 * 1024


class BadRequestError(Exception):
    """Bytes that are not an HTTP/1.1 request; `status` is what to answer before closing."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names in lower case, the last value of a repeated one."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


def expects_continue(inbox: bytes | bytearray) -> bool:
    """Whether a head is complete and its sender waits for 100 Continue before the body."""
    end = inbox.find(b"\r\n\r\n")
    return end >= 0 and b"expect: 100-continue" in bytes(inbox[:end]).lower()


def take(inbox: bytearray) -> Request | None:
    """Remove the first request from `inbox`; None while it is incomplete."""
    while inbox.startswith(b"\r\n"):  # RFC 9112, 2.2: empty lines before a request line
        del inbox[:2]
    end = inbox.find(b"\r\n\r\n")
    if end < 0:
        if len(inbox) > MAX_HEAD_BYTES:
            raise BadRequestError("431 Request Header Fields Too Large")
        return None
    lines = bytes(inbox[:end]).decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequestError("400 Bad Request")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip():
            raise BadRequestError("400 Bad Request")
        headers[name.lower()] = value.strip()
    body = _body(inbox, end + 4, headers)
    if body is None:
        return None
    content, used = body
    del inbox[:used]
    path, _, query = words[1].partition("?")
    wish = headers.get("connection", "").lower()
    keep = wish != "close" if words[2] == "HTTP/1.1" else wish == "keep-alive"
    return Request(words[0], path, query, headers, content, keep)


def _body(inbox: bytearray, start: int, headers: dict[str, str]) -> tuple[bytes, int] | None:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _chunked(inbox, start)
    text = headers.get("content-length", "0")
    if not text.isdecimal():
        raise BadRequestError("400 Bad Request")
    length = int(text)
    if length > MAX_BODY_BYTES:
        raise BadRequestError("413 Content Too Large")
    if len(inbox) < start + length:
        return None
    return bytes(inbox[start : start + length]), start + length


def _chunked(inbox: bytearray, at: int) -> tuple[bytes, int] | None:
    content = bytearray()
    while True:
        line_end = inbox.find(b"\r\n", at)
        if line_end < 0:
            return None
        try:
            size = int(bytes(inbox[at:line_end]).split(b";")[0], 16)
        except ValueError as error:
            raise BadRequestError("400 Bad Request") from error
        if size < 0 or size + len(content) > MAX_BODY_BYTES:
            raise BadRequestError("413 Content Too Large")
        after = line_end + 2 + size
        if len(inbox) < after + 2:
            return None
        if size == 0:
            trailer_end = inbox.find(b"\r\n\r\n", line_end)
            return None if trailer_end < 0 else (bytes(content), trailer_end + 4)
        content += inbox[line_end + 2 : after]
        at = after + 2
