"""A model hub and the store it sends downloads on to, on loopback, with the faults of both."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

REVISION = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "lab/gated-model"


@dataclass
class Hub:
    """What is served and what was asked: (server, path, Authorization, Range).

    `during`: called while a request waits for its answer.
    """

    files: dict[str, bytes]
    token: str
    hub_port: int = 0
    store_port: int = 0
    asked: list[tuple[str, str, str, str]] = field(default_factory=list)
    cut_at: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    during: Callable[[], None] = lambda: None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.hub_port}"


def _handler(hub: Hub, name: str) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given = self.headers.get("Authorization", "")
            hub.asked.append((name, self.path, given, self.headers.get("Range", "")))
            hub.during()
            if name == "hub":
                self._redirect(given)
            else:
                self._serve()

        def _redirect(self, given: str) -> None:
            if hub.statuses:
                return self._plain(hub.statuses.pop(0))
            if given != f"Bearer {hub.token}":
                return self._plain(401)
            old = f"/{REPOSITORY}-old/resolve/{REVISION}/"
            if self.path.startswith(old):  # a repository that was renamed: the same host
                return self._plain(307, self.path.replace("-old", ""))
            file = self.path.removeprefix(f"/{REPOSITORY}/resolve/{REVISION}/")
            if file not in hub.files:
                return self._plain(404)
            return self._plain(302, f"http://127.0.0.1:{hub.store_port}/blob/{file}")

        def _serve(self) -> None:
            data = hub.files[self.path.removeprefix("/blob/")]
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            start = int(asked[1]) if asked else 0
            self.send_response(206 if asked else 200)
            self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            end = hub.cut_at.pop(0) if hub.cut_at else len(data)
            self.wfile.write(data[start:end])

        def _plain(self, status: int, location: str = "") -> None:
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep quiet."""

    return Handler


@contextmanager
def running_hub(hub: Hub) -> Iterator[Hub]:
    """Both servers for the block."""
    servers = [
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub, name))
        for name in ("hub", "store")
    ]
    hub.hub_port, hub.store_port = (server.server_port for server in servers)
    threads = [threading.Thread(target=server.serve_forever, args=(0.05,)) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()
