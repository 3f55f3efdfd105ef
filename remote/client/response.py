"""One request's record, built from the reads of its response.

Invariant: chunks and their stamps depend on the bytes and the stamps of the reads that ended them
alone; the first thing found wrong is the request's error, and its chunks are kept.
"""

from __future__ import annotations

import hashlib
import json
from array import array

from records.digest import Digest
from records.measurement import Request
from remote.client.http1 import ProtocolError, ResponseReader
from remote.client.openai import DONE, Event, EventError, Usage, error_message, parse_event
from remote.client.sse import EventStream
from remote.engine.redact import redact

MAX_DETAIL_CHARS = 200
_MAX_BODY_BYTES = 1 << 16
_NONE = -1


class Response:
    """A request under way. Times are CLOCK_MONOTONIC ns, `sent_ns` -1: never sent."""

    def __init__(self, index: int, due_ns: int) -> None:
        self.index, self.due_ns = index, due_ns
        self.sent_ns = self.first_byte_ns = self.end_ns = _NONE
        self.error = self.detail = ""
        self.ended = False
        self.chunk_ns = array("q")
        self.chunk_tokens = array("q")
        self.merged = array("q")
        self._reader = ResponseReader()
        self._stream: EventStream | None = None
        self._body = b""
        self._done = False
        self._finish = ""
        self._counted = 0
        self._uncounted = False
        self._usage: Usage | None = None
        self._steps: tuple[int, ...] = ()
        # Of the ids in decimal, joined by commas; None once a chunk came without ids.
        self._ids: hashlib._Hash | None = hashlib.sha256()

    def read(self, stamp_ns: int, data: bytes) -> None:
        """One read of the response, received at `stamp_ns`."""
        if self.first_byte_ns < 0:
            self.first_byte_ns = stamp_ns
        try:
            payload = self._reader.feed(data)
        except ProtocolError as error:
            self.fail("bad-http", str(error), stamp_ns)
            return
        if payload:
            self._payload(stamp_ns, payload)
        if self._reader.done:
            self.end(stamp_ns)

    def end(self, at_ns: int) -> None:
        """The response is whole."""
        self.ended, self.end_ns = True, at_ns
        self._judge()

    def fail(self, kind: str, words: str, at_ns: int) -> None:
        """The response ended before its end, or is not one."""
        self.ended, self.end_ns = True, at_ns
        if kind == "cancelled":
            self.error, self.detail = kind, words
        else:
            self._wrong(kind, words)

    def record(self, start_ns: int, ramp_end_ns: int, scheduled_ns: int) -> Request:
        """The request as it is recorded, for a window that began at `start_ns`."""
        sent = self.sent_ns
        usage = self._usage or Usage(_NONE, _NONE, _NONE)
        outcome = {"": "completed", "cancelled": "cancelled"}.get(self.error, "failed")
        return Request(
            index=self.index,
            outcome=outcome,
            ramp=0 <= sent < ramp_end_ns,
            scheduled_ns=scheduled_ns - start_ns,
            sent_ns=sent - start_ns if sent >= 0 else _NONE,
            first_byte_ns=self.first_byte_ns - sent if self.first_byte_ns >= 0 else _NONE,
            end_ns=self.end_ns - sent if sent >= 0 else _NONE,
            status=self._reader.status,
            chunk_ns=tuple(ns - sent for ns in self.chunk_ns),
            chunk_tokens=tuple(self.chunk_tokens),
            merged=tuple(self.merged),
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            finish_reason=self._finish,
            tokens_digest=Digest(self._ids.hexdigest()) if self._ids and self.chunk_ns else None,
            step_accepted=self._steps,
            error=self.error,
            detail=redact(self.detail)[:MAX_DETAIL_CHARS],
        )

    def _payload(self, stamp_ns: int, payload: bytes) -> None:
        if self._stream is None:
            if self._reader.status != 200 or not self._is_event_stream():
                self._body += payload[: _MAX_BODY_BYTES - len(self._body)]
                return
            self._stream = EventStream()
        first = len(self.chunk_ns)
        for data in self._stream.feed(payload):
            if data == DONE:
                self._done = True
                continue
            try:
                event = parse_event(data)
            except EventError as error:
                self._wrong("bad-event", f"{error}: {data[:80].decode('utf-8', 'replace')}")
                continue
            self._event(stamp_ns, event)
        self.merged.extend(range(first, len(self.chunk_ns) - 1))

    def _event(self, stamp_ns: int, event: Event) -> None:
        if event.error:
            self._wrong("server-error", event.error)
        tokens = len(event.token_ids) if event.token_ids is not None else _NONE
        usage = event.usage
        if tokens < 0 and usage and event.has_choices and usage.completion_tokens >= 0:
            tokens = max(usage.completion_tokens - self._counted, 0)
        if event.content or tokens > 0:
            self.chunk_ns.append(stamp_ns)
            self.chunk_tokens.append(tokens)
            self._digest(event.token_ids)
            if tokens < 0:
                self._uncounted = True
            else:
                self._counted += tokens
        self._usage = usage or self._usage
        self._finish = event.finish_reason or self._finish
        self._steps = event.step_accepted or self._steps

    def _digest(self, ids: tuple[int, ...] | None) -> None:
        if ids is None:
            self._ids = None
        elif self._ids is not None and ids:
            comma = b"," if self._counted else b""
            self._ids.update(comma + b",".join(b"%d" % i for i in ids))

    def _judge(self) -> None:
        """What is wrong with a response that arrived whole."""
        status, usage = self._reader.status, self._usage
        if status != 200:
            self._wrong("http-status", f"{status}: {_message(self._body)}")
        elif not self._is_event_stream():
            kind = self._reader.headers.get("content-type", "")
            self._wrong("bad-event", f"not an event stream but {kind!r}: {_message(self._body)}")
        elif not self._done:
            self._wrong("truncated", "the stream ended without [DONE]")
        elif self._uncounted:
            self._wrong("no-token-counts", "the server sent neither token_ids nor usage by chunk")
        elif usage and usage.completion_tokens not in (_NONE, self._counted):
            self._wrong(
                "usage-mismatch",
                f"usage says {usage.completion_tokens} tokens, the chunks carried {self._counted}",
            )

    def _is_event_stream(self) -> bool:
        kind = self._reader.headers.get("content-type", "")
        return kind.partition(";")[0].strip().lower() == "text/event-stream"

    def _wrong(self, kind: str, words: str) -> None:
        if not self.error:
            self.error, self.detail = kind, words


def _message(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return error_message(value) if isinstance(value, dict) else text
