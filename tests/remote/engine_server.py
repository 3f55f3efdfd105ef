"""A small server that behaves, or misbehaves, as engines do; run as a process by the tests.

usage: engine_server.py MODE PORT
"""

from __future__ import annotations

import http.server
import os
import signal
import sys
import time


def say(text: str) -> None:
    """One line in one write: the processes share a file, and PYTHONUNBUFFERED splits print's."""
    os.write(1, f"{text}\n".encode())


class Handler(http.server.BaseHTTPRequestHandler):
    """200 for /health, 503 for the first requests in mode `slow`."""

    unready = 0

    def do_GET(self) -> None:
        ready = Handler.unready <= 0
        Handler.unready -= 1
        self.send_response(200 if ready and self.path == "/health" else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        say("request")


def idle_child(leave_session: bool, orphan: bool) -> None:
    """Start a process that ignores SIGINT; with `orphan` its parent ends at once."""
    if os.fork():
        return
    if leave_session:
        os.setsid()
    if orphan and os.fork():
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say(f"child {os.getpid()}")
    while True:
        time.sleep(60)


def main(mode: str, port: int) -> None:
    """Serve until SIGINT, or do what the mode says."""
    if mode == "die":
        say("(EngineCore pid=7) ERROR 11-30 09:00:00 [core.py:1] ValueError: no such dtype")
        say("RuntimeError: Engine core initialization failed. See root cause above.")
        sys.exit(3)
    if mode == "silent":
        say("loading")
        time.sleep(600)
    if mode == "deaf":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if mode == "children":
        idle_child(leave_session=False, orphan=False)
        idle_child(leave_session=True, orphan=False)
        idle_child(leave_session=True, orphan=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if mode == "slow":
        Handler.unready = 3
    server = http.server.HTTPServer(("127.0.0.1", port), Handler)
    say("Application startup complete.")
    try:
        server.serve_forever(poll_interval=0.05)
    except KeyboardInterrupt:
        say("shutdown")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
