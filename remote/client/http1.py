"""One HTTP/1.1 response, read in pieces: which bytes of each piece are payload, and where it ends.

Invariant: the payload, the status and the end do not depend on how the bytes were cut into pieces.
Grammar: RFC 9112 (message syntax), sections 4, 5, 6 and 7.
"""

from __future__ import annotations

import re

_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\r\n]*)?")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\r\n]*?)[ \t]*")
_SIZE_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?")

# A head or a line beyond this is no answer of an LLM server; memory stays bounded.
MAX_HEAD_BYTES = 65536
MAX_LINE_BYTES = 8192

_HEAD, _SIZE, _DATA, _TRAILER, _LENGTH, _UNTIL_CLOSE, _DONE = range(7)


class ProtocolError(Exception):
    """The bytes are not an HTTP/1.1 response."""


class ResponseReader:
    """Reads one response. `feed` takes the pieces in order; `status` is 0 until the head is in.

    `left` is the number of bytes up to the next chunk-size line, where that is known (0: the next
    byte begins one), else -1. A caller that has skipped these bytes itself, and any whole chunks
    behind them, says so with `at_size_line`.
    """

    __slots__ = ("_line", "_state", "_to_come", "headers", "keep_alive", "left", "status")

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.keep_alive = False
        self.left = -1
        self._state = _HEAD
        self._line = b""
        self._to_come = 0

    @property
    def done(self) -> bool:
        """Whether the whole response has been read."""
        return self._state == _DONE

    def at_size_line(self) -> None:
        """The next byte begins a chunk-size line."""
        self._state = _SIZE
        self.left = 0

    def feed(self, data: bytes) -> bytes:
        """The payload bytes in this piece. ProtocolError on bad framing or bytes after the end."""
        payload: list[bytes] = []
        at = 0
        while at < len(data):
            if self._state == _DATA:
                at = self._chunk_data(data, at, payload)
            elif self._state == _LENGTH:
                part = data[at : at + self._to_come]
                payload.append(part)
                at += len(part)
                self._to_come -= len(part)
                if self._to_come == 0:
                    self._state = _DONE
            elif self._state == _UNTIL_CLOSE:
                payload.append(data[at:])
                at = len(data)
            elif self._state == _HEAD:
                at = self._head(data, at)
            elif self._state == _DONE:
                raise ProtocolError(f"{len(data) - at} bytes after the end of the response")
            else:
                at = self._framing_line(data, at)
        return payload[0] if len(payload) == 1 else b"".join(payload)

    def close(self) -> bool:
        """The peer has closed: whether that ended the response properly (RFC 9112, section 8)."""
        if self._state == _UNTIL_CLOSE:
            self._state = _DONE
        return self._state == _DONE

    def _chunk_data(self, data: bytes, at: int, payload: list[bytes]) -> int:
        # `left` counts the data and the two bytes of CRLF behind it.
        body = self.left - 2
        if body > 0:
            part = data[at : at + body]
            payload.append(part)
            at += len(part)
            self.left -= len(part)
        while self.left <= 2 and at < len(data):
            if data[at] != (13 if self.left == 2 else 10):
                raise ProtocolError("a chunk does not end where its size says")
            at += 1
            self.left -= 1
            if self.left == 0:
                self.at_size_line()
                break
        return at

    def _framing_line(self, data: bytes, at: int) -> int:
        self.left = -1
        end = data.find(b"\n", at)
        if end < 0:
            self._line += data[at:]
            if len(self._line) > MAX_LINE_BYTES:
                raise ProtocolError("a chunk-size or trailer line without end")
            return len(data)
        line = self._line + data[at : end + 1]
        self._line = b""
        if not line.endswith(b"\r\n"):
            raise ProtocolError(f"a line of the chunked coding without CRLF: {line[:40]!r}")
        line = line[:-2]
        if self._state == _SIZE:
            match = _SIZE_LINE.fullmatch(line)
            if match is None:
                raise ProtocolError(f"not a chunk size: {line[:40]!r}")
            size = int(match[1], 16)
            if size == 0:
                self._state = _TRAILER
            else:
                self._state = _DATA
                self.left = size + 2
        elif line == b"":
            self._state = _DONE
        elif _FIELD.fullmatch(line) is None:
            raise ProtocolError(f"not a trailer field: {line[:40]!r}")
        return end + 1

    def _head(self, data: bytes, at: int) -> int:
        seen = len(self._line)
        head = self._line + data[at:]
        end = head.find(b"\r\n\r\n")
        if end < 0:
            if len(head) > MAX_HEAD_BYTES:
                raise ProtocolError("a response head without end")
            if not b"HTTP/1.".startswith(head[:7]):
                raise ProtocolError(f"not an HTTP/1 response: {head[:40]!r}")
            self._line = head
            return len(data)
        self._line = b""
        self._parse_head(head[:end])
        return at + end + 4 - seen

    def _parse_head(self, head: bytes) -> None:
        first, *lines = head.split(b"\r\n")
        match = _STATUS_LINE.fullmatch(first)
        if match is None:
            raise ProtocolError(f"not an HTTP/1 status line: {first[:40]!r}")
        headers: dict[str, str] = {}
        for line in lines:
            field = _FIELD.fullmatch(line)
            if field is None:
                raise ProtocolError(f"not a header field: {line[:40]!r}")
            name, value = field[1].decode("ascii").lower(), field[2].decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        status = int(match[2])
        if status < 200:  # an interim response; the final one follows
            return
        self.status, self.headers = status, headers
        options = {o.strip().lower() for o in headers.get("connection", "").split(",")}
        self.keep_alive = "close" not in options and (match[1] == b"1" or "keep-alive" in options)
        self._choose_body(status, headers)

    def _choose_body(self, status: int, headers: dict[str, str]) -> None:
        """RFC 9112, section 6.3: what delimits the body."""
        coding = headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length")
        if status in (204, 304):
            self._state = _DONE
        elif coding == "chunked":
            self.at_size_line()
        elif coding:
            raise ProtocolError(f"transfer-encoding {coding[:40]!r} is not spoken here")
        elif length is not None:
            values = {part.strip() for part in length.split(",")}
            value = values.pop()
            if values or re.fullmatch("[0-9]{1,18}", value) is None:
                raise ProtocolError(f"not a content-length: {length[:40]!r}")
            self._to_come = int(value)
            self._state = _LENGTH if self._to_come else _DONE
        else:
            self._state = _UNTIL_CLOSE
            self.keep_alive = False
