"""The `reference` command: options, listeners, log lines, signals.

Invariant: every start-up line and every answer that names an engine says that it is synthetic.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import signal
import socket
import sys
import time
from pathlib import Path

from records.errors import KitError, PortInUseError, ScheduleError
from remote.reference.ask import Options
from remote.reference.faults import KINDS, parse_fault
from remote.reference.schedule import Schedule, parse_delay, parse_duration_ns, parse_tokens
from remote.reference.server import Server
from remote.reference.service import Service, Setup

_PR_SET_TIMERSLACK = 29  # linux/prctl.h


def parser() -> argparse.ArgumentParser:
    """The options of the reference server."""
    p = argparse.ArgumentParser(prog="reference", description="Serve a stream of known schedule.")
    p.add_argument("--host", action="append", help="address to listen on, repeatable [127.0.0.1]")
    p.add_argument("--port", type=int, default=8000, help="0 takes a free one and prints it")
    p.add_argument("--unix", metavar="PATH", help="listen on a unix socket (alone, without --host)")
    p.add_argument("--served-model-name", default="synthetic", metavar="NAME")
    p.add_argument("--max-model-len", type=int, default=32_768, metavar="TOKENS")
    p.add_argument("--ttft", default="constant:50ms", metavar="DELAY", help="to the first chunk")
    p.add_argument(
        "--gap",
        default="constant:20ms",
        metavar="DELAY",
        help="between chunks: constant:20ms, uniform:10ms:30ms, normal:20ms:2ms[:MIN[:MAX]], "
        "exponential:20ms, lockstep:20ms, cycle:10ms:30ms",
    )
    p.add_argument("--tokens", default="1", help="a chunk: 1, cycle:1,3,1 or accept:K:MEAN")
    p.add_argument("--tail", default="0ns", help="wait before the usage event (vLLM: none)")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--fault", action="append", default=[], help=", ".join(KINDS))
    p.add_argument("--truth-chunks", type=int, default=1 << 20, help="stamps kept, 16 bytes each")
    caching = p.add_mutually_exclusive_group()
    caching.add_argument("--no-prefix-caching", action="store_true")
    caching.add_argument("--enable-prefix-caching", action="store_true", help="the default")
    p.add_argument(
        "--log-line-after",
        nargs=2,
        action="append",
        default=[],
        metavar=("N", "TEXT"),
        help="log TEXT when the Nth request for tokens comes, as an engine that compiles does",
    )
    p.add_argument("--no-spec-metrics", action="store_true", help="no metrics in the usage event")
    p.add_argument("--spin", action="store_true", help="never sleep: one core, exact times")
    p.add_argument("--margin", default="60us", help="spun before each send without --spin")
    p.add_argument("--speculative-config", default="", help="an engine's, for rehearsals: ignored")
    p.add_argument("--boot-delay", default="0s", help="wait before listening")
    p.add_argument("--fail-boot", action="store_true", help="log an error and exit 1 after it")
    return p


def setup(args: argparse.Namespace) -> Setup:
    """The Setup that parsed options describe. ScheduleError where one does not decode."""
    schedule = Schedule(
        parse_delay(args.ttft), parse_delay(args.gap), parse_tokens(args.tokens), args.seed
    )
    faults = tuple(parse_fault(fault) for fault in args.fault)
    options = Options(schedule, faults, None, parse_duration_ns(args.tail))
    return Setup(
        args.served_model_name,
        args.max_model_len,
        options,
        args.truth_chunks,
        not args.no_prefix_caching,
        not args.no_spec_metrics,
        tuple((_request_number(number), text) for number, text in args.log_line_after),
    )


def _request_number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ScheduleError(f"--log-line-after {text!r}", "write a number from 1 on, then a text")
    return int(text)


def listen(hosts: list[str], port: int) -> list[socket.socket]:
    """Listening TCP sockets, all on one port. PortInUseError where it is taken."""
    sockets: list[socket.socket] = []
    for host in hosts:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sockets.append(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            sock.bind((host, port))
        except OSError as error:
            for opened in sockets:
                opened.close()
            if error.errno != errno.EADDRINUSE:
                raise
            message = f"port {port} on {host} is taken"
            raise PortInUseError(message, "choose another --port, or 0 for a free one") from error
        sock.listen(4096)
        port = sock.getsockname()[1]
    return sockets


def listen_unix(path: Path) -> list[socket.socket]:
    """A listening unix socket at `path`; a socket left there by a dead server is replaced."""
    if path.is_socket():
        path.unlink()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(str(path))
    sock.listen(4096)
    return [sock]


def main(argv: list[str]) -> int:
    """Serve until SIGINT or SIGTERM; returns the exit code."""
    args = parser().parse_args(argv)
    try:
        return _serve(args)
    except KitError as error:
        sys.stderr.write(f"reference: {error.message}\n  {error.remedy}\n")
        return error.exit_code


def _serve(args: argparse.Namespace) -> int:
    service = Service(setup(args), _log)
    margin_ns = parse_duration_ns(args.margin)
    _log("reference server: SYNTHETIC responses, no model, no engine, no attention backend")
    _log(f"synthetic schedule: ttft={args.ttft} gap={args.gap} tokens={args.tokens}")
    time.sleep(parse_duration_ns(args.boot_delay) / 1e9)
    if args.fail_boot:
        _log("RuntimeError: synthetic boot failure, asked for with --fail-boot", "ERROR")
        return 1
    if args.unix:
        listeners, where = listen_unix(Path(args.unix)), f"unix:{args.unix}"
    else:
        listeners = listen(args.host or ["127.0.0.1"], args.port)
        names = (sock.getsockname() for sock in listeners)
        urls = (f"http://{f'[{n[0]}]' if ':' in n[0] else n[0]}:{n[1]}" for n in names)
        where = " ".join(urls)
    server = Server(service, listeners, spin=args.spin, margin_ns=margin_ns)
    # The default slack of 50 us would be part of every gap (prctl(2)).
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.stop())
    _log(f"Starting synthetic reference server on {where}")
    sys.stdout.write("INFO:     Application startup complete.\n")
    sys.stdout.flush()
    server.run()
    if args.unix:
        Path(args.unix).unlink(missing_ok=True)
    _log("synthetic reference server stopped")
    return 0


def _log(message: str, level: str = "INFO") -> None:
    stamp = time.strftime("%m-%d %H:%M:%S")
    sys.stdout.write(f"(ReferenceServer pid={os.getpid()}) {level} {stamp} [main.py] {message}\n")
    sys.stdout.flush()
