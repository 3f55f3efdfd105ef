"""What to answer to each request: routes, and the accounts of what was sent.

Invariant: no socket and no clock here; the loop passes the time in and says how a response
ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import formatdate

from remote.reference import faults, wire
from remote.reference.ask import Ask, Options, RefusedError, decode_ask, refusal
from remote.reference.counters import Counters, PrefixCache
from remote.reference.request import BadRequestError, Request
from remote.reference.schedule import Drawn, draw
from remote.reference.truth import ABORTED, COMPLETE, FAULT, OPEN, Entry, TruthLog
from remote.reference.wire import Piece, Reply

_JSON = "application/json"
_STATUS = {
    400: ("400 Bad Request", "BadRequestError"),
    429: ("429 Too Many Requests", "RateLimitError"),
    503: ("503 Service Unavailable", "ServiceUnavailableError"),
}


class Response:
    """An answer under way: its pieces and, where it carries tokens, its truth and schedule."""

    __slots__ = ("drawn", "entry", "pieces", "reason", "streamed")

    def __init__(
        self,
        pieces: Iterator[Piece],
        entry: Entry | None = None,
        drawn: Drawn | None = None,
        reason: str = "",
        *,
        streamed: bool = False,
    ) -> None:
        self.pieces = pieces
        self.entry = entry
        self.drawn = drawn
        self.reason = reason
        self.streamed = streamed

    def chunks_sent(self) -> int:
        """Chunks of the schedule that the client was sent."""
        if self.entry is None or self.drawn is None:
            return 0
        return self.entry.sent if self.streamed else self.entry.sent * len(self.drawn.tokens)


@dataclass(frozen=True, slots=True)
class Setup:
    """What the server is started with. `log_lines`: what to log at which request for tokens."""

    model: str
    max_model_len: int
    options: Options
    truth_chunks: int
    prefix_caching: bool = True
    spec_metrics: bool = True
    log_lines: tuple[tuple[int, str], ...] = ()


class Service:
    """The routes of the reference server and the state behind them."""

    def __init__(self, setup: Setup, log: Callable[[str], None]) -> None:
        self._setup, self._log = setup, log
        self._prefixes = PrefixCache(enabled=setup.prefix_caching)
        self._counters = Counters()
        self._open: set[Response] = set()
        self._ordinal = 0
        self._asked = 0
        self.truth = TruthLog(setup.truth_chunks)

    def answer(self, request: Request, received_ns: int, wall_s: int) -> Response:
        """The response to a request received at `received_ns` (wall clock in whole seconds)."""
        date, close = formatdate(wall_s, usegmt=True), not request.keep_alive
        try:
            if request.method == "POST" and request.path in _TOKEN_PATHS:
                return self._tokens(request, received_ns, wall_s, date)
            status, kind, body = self._plain(request, wall_s)
        except RefusedError as refused:
            status, kind, body = refused.status, _JSON, refused.body
        return Response(wire.whole(status, kind, body, date, close=close))

    def malformed(self, error: BadRequestError, wall_s: int) -> Response:
        """The answer to bytes that are no request; the connection ends with it."""
        date = formatdate(wall_s, usegmt=True)
        body = b"Invalid HTTP request received."
        return Response(wire.whole(error.status, "text/plain", body, date, close=True))

    def stalled(self, response: Response) -> None:
        """The response will never continue, on purpose."""
        if response.entry is not None:
            response.entry.status = FAULT

    def ended(self, response: Response, now_ns: int, *, by_client: bool) -> None:
        """The response is over: all sent, cut by a fault, or left by the client."""
        self._open.discard(response)
        entry, drawn = response.entry, response.drawn
        if entry is None or drawn is None:
            return
        entry.done_ns = now_ns
        whole = entry.sent == len(entry.tokens) and not by_client
        if entry.status == OPEN:
            entry.status = COMPLETE if whole else ABORTED if by_client else FAULT
        reason = response.reason if whole else "abort" if by_client else "error"
        chunks, first, span = response.chunks_sent(), 0, 0
        if chunks and response.streamed:
            first, last = entry.sent_ns[0], entry.sent_ns[chunks - 1]
            first, span = first - entry.received_ns, last - first
        elif chunks:
            first = drawn.waits_ns[0]
            span = entry.sent_ns[0] - entry.received_ns - first
        self._counters.finish(drawn, chunks, reason, first, span)

    def _plain(self, request: Request, wall_s: int) -> tuple[str, str, bytes]:
        route = (request.method, request.path)
        if route == ("GET", "/health"):
            return "200 OK", "", b""
        if route == ("GET", "/version"):
            return "200 OK", _JSON, wire.dumps({"version": "0.29.0+synthetic"})
        if route == ("GET", "/v1/models"):
            return "200 OK", _JSON, self._models(wall_s)
        if route == ("GET", "/metrics"):
            drafted = self._setup.options.schedule.tokens.drafted
            running = [(r.drawn, r.chunks_sent()) for r in self._open if r.drawn is not None]
            text = self._counters.exposition(self._setup.model, drafted, running)
            return "200 OK", "text/plain; version=1.0.0; charset=utf-8", text
        if route == ("POST", "/reset_prefix_cache"):
            self._prefixes.reset()
            return "200 OK", _JSON, b'{"success":true}'
        if route == ("GET", "/truth"):
            if request.query == "format=binary":
                return "200 OK", "application/octet-stream", b"".join(self.truth.binary())
            return "200 OK", "application/jsonl", b"".join(self.truth.lines())
        if route == ("GET", "/truth/summary"):
            return "200 OK", _JSON, wire.dumps(self.truth.summary())
        if route == ("POST", "/truth/reset"):
            self.truth.reset()
            self._ordinal = 0
            return "200 OK", _JSON, b'{"success":true}'
        if request.path in _PATHS:
            return "405 Method Not Allowed", _JSON, b'{"detail":"Method Not Allowed"}'
        return "404 Not Found", _JSON, b'{"detail":"Not Found"}'

    def _tokens(self, request: Request, received_ns: int, wall_s: int, date: str) -> Response:
        setup, chat = self._setup, request.path == "/v1/chat/completions"
        header = request.headers.get("x-reference")
        ask = decode_ask(
            chat, request.body, header, setup.model, setup.max_model_len, setup.options
        )
        refused = faults.find(ask.options.faults, "status")
        if refused is not None:
            default = (f"{refused.number} Internal Server Error", "InternalServerError")
            status, kind = _STATUS.get(refused.number, default)
            raise refusal(status, "synthetic refusal", kind)
        ordinal, self._ordinal, self._asked = self._ordinal, self._ordinal + 1, self._asked + 1
        given = request.headers.get("x-request-id")
        # A given id makes the draw independent of the order of arrival.
        drawn = draw(ask.options.schedule, given or f"#{ordinal}", ask.output_tokens)
        drawn = drawn.aligned(received_ns)
        stop = faults.find(ask.options.faults, "stop")
        if stop is not None:
            drawn = drawn.head(stop.number)
        request_id = given or f"{self._asked:016x}"
        reply = self._reply(ask, drawn, request_id, wall_s, "stop" if stop else "length")
        for after, text in setup.log_lines:
            if after == self._asked:
                self._log(text)
        lie = faults.find(ask.options.faults, "miscount")
        if lie is not None:
            self._counters.sent.generation_tokens += lie.number
        self._counters.prompt(len(ask.prompt_ids), self._prefixes.hits(ask.prompt_ids))
        named = [f"{fault.kind}:{fault.number}" for fault in ask.options.faults]
        close = not request.keep_alive
        if ask.stream:
            entry = self.truth.open(request_id, received_ns, drawn.tokens, named)
            pieces = faults.stream(reply, ask.options.faults, date, close=close)
        else:
            entry = self.truth.open(request_id, received_ns, [sum(drawn.tokens)], named)
            wait_ns, body = sum(drawn.waits_ns), wire.body(reply)
            pieces = wire.whole("200 OK", _JSON, body, date, close=close, wait_ns=wait_ns, chunks=1)
        response = Response(pieces, entry, drawn, reply.finish_reason, streamed=ask.stream)
        self._open.add(response)
        return response

    def _reply(self, ask: Ask, drawn: Drawn, request_id: str, wall_s: int, reason: str) -> Reply:
        given = ask.options.faults
        lie = faults.find(given, "wrong-usage")
        return Reply(
            chat=ask.chat,
            response_id=("chatcmpl-" if ask.chat else "cmpl-") + request_id,
            created=wall_s,
            model=self._setup.model,
            prompt_ids=ask.prompt_ids,
            drawn=drawn,
            finish_reason=reason,
            return_token_ids=ask.return_token_ids,
            include_usage=ask.include_usage,
            continuous_usage=ask.continuous_usage,
            spec_metrics=self._setup.spec_metrics,
            usage_lie=lie.number if lie else 0,
            send_usage=faults.find(given, "no-usage") is None,
            send_done=faults.find(given, "no-done") is None,
            tail_wait_ns=ask.options.tail_wait_ns,
        )

    def _models(self, wall_s: int) -> bytes:
        setup = self._setup
        rights = {
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        permission = {"id": "modelperm-0", "object": "model_permission", "created": wall_s}
        card = {"id": setup.model, "object": "model", "created": wall_s}
        card |= {"owned_by": "reference-server", "root": setup.model, "parent": None}
        card |= {"max_model_len": setup.max_model_len, "permission": [permission | rights]}
        return wire.dumps({"object": "list", "data": [card]})


_TOKEN_PATHS = ("/v1/completions", "/v1/chat/completions")
_PATHS = (
    *_TOKEN_PATHS,
    "/health",
    "/version",
    "/v1/models",
    "/metrics",
    "/reset_prefix_cache",
    "/truth",
    "/truth/summary",
    "/truth/reset",
)
