"""An event stream, read in pieces: the data of each event, dispatched at the byte that ends it.

Invariant: the events, and the byte at which each is dispatched, do not depend on how the stream was
cut. Grammar: WHATWG HTML, section 9.2.6 "Interpreting an event stream".
"""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class EventStream:
    """Reads one stream. A CR ends its line at once; an LF right behind it belongs to that end."""

    __slots__ = ("_after_cr", "_begun", "_data", "_line")

    def __init__(self) -> None:
        self._line = b""
        self._data: list[bytes] = []
        self._after_cr = False
        self._begun = False

    def feed(self, payload: bytes) -> list[bytes]:
        """The data of the events that end in this piece; several data lines are joined by LF."""
        if (
            payload.startswith(b"data: ")
            and payload.endswith(b"\n\n")
            and payload.count(b"\n") == 2
            and self._begun
            and not (self._line or self._data)
            and b"\r" not in payload
        ):  # nine in ten: one event of one line, whole
            self._after_cr = False
            return [payload[6:-2]]
        if self._after_cr and payload:
            self._after_cr = False
            if payload.startswith(b"\n"):
                payload = payload[1:]
        if not self._begun:
            whole = self._line + payload
            if len(whole) < len(_BOM) and _BOM.startswith(whole):
                self._line = whole
                return []
            self._line, payload = b"", whole.removeprefix(_BOM)
            self._begun = True
        return self._lines(payload)

    def _lines(self, payload: bytes) -> list[bytes]:
        events = []
        text = self._line + payload
        ended_by_cr = text.endswith(b"\r")
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self._line = text.split(b"\n")
        self._after_cr = ended_by_cr
        for line in lines:
            if line:
                self._field(line)
            elif self._data:
                events.append(b"\n".join(self._data))
                self._data = []
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":  # event, id and retry say nothing here; a comment has an empty name
            self._data.append(value[1:] if value.startswith(b" ") else value)
