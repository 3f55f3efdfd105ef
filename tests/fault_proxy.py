"""A registry that misbehaves: a small HTTP server that serves given answers, or passes them on.

Each rule is asked for the path; the first that returns an answer decides, otherwise the request
goes to the registry behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx


@dataclass(frozen=True)
class Fault:
    """An answer; `cut_to` ends the connection after that many bytes of the body."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    cut_to: int | None = None


Rule = Callable[["Asked"], Fault | None]


@dataclass
class Asked:
    """What one request was: path, headers, and what the registry behind would answer."""

    path: str
    headers: dict[str, str]
    behind: Callable[[], httpx.Response]


@dataclass
class FaultProxy:
    """A running proxy. `asked` lists every request in order."""

    port: int
    asked: list[Asked] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextmanager
def fault_proxy(behind: str, rule: Rule) -> Iterator[FaultProxy]:
    """Serve on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            # A daemon sends one Accept for each type; RFC 9110, 5.3: the same as one list.
            names = {name.lower() for name in self.headers}
            headers = {name: ", ".join(self.headers.get_all(name) or ()) for name in names}
            headers.pop("host")
            asked = Asked(
                self.path, headers, lambda: httpx.get(f"{behind}{self.path}", headers=headers)
            )
            proxy.asked.append(asked)
            fault = rule(asked)
            if fault is None:
                real = asked.behind()
                kept = ("content-type", "www-authenticate", "docker-content-digest")
                pairs = tuple((k, v) for k, v in real.headers.items() if k.lower() in kept)
                fault = Fault(real.status_code, real.content, pairs)
            self.send_response(fault.status)
            for name, value in fault.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(fault.body)))
            self.end_headers()
            with suppress(ConnectionError):  # whoever asked has seen enough
                self.wfile.write(fault.body[: fault.cut_to])
            if fault.cut_to is not None:
                self.close_connection = True

        def log_message(self, *_args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy = FaultProxy(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
