"""How exact and how costly clients are, side by side: one server of known schedule, one core each.

`python -m tests.bench.bench_client [--repeat N] [--only NAME] [--peers]` builds pulse.c and an
environment for the other clients, prints a table and writes it to build/bench.md, a picture of it
to bench.svg, its rows to bench.json. With --peers whole benchmark tools are in the comparison, too,
each in an environment of its own (peers.py), each case run once: they take a minute a case.

The server has a core of its own, the client another. A stamp's error is the client's time of a
chunk minus the server's just before it sent it; chunks that a client itself marks as upper bounds
are left out and counted as merged. Every case is run several times, and for every client its own
best run counts: fewest merged chunks, then least p99 error. All get the same scheduling priority,
raised where the system lets us.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from remote.affinity import on_cpus
from remote.engine.ports import free_port
from tests.bench import peers
from tests.bench.plot import svg

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BUILD = ROOT / "build"
ROUNDS = 2
SECONDS_A_ROUND = 2.0
TIMEOUT_S = 240.0


@dataclass(frozen=True)
class Case:
    """`streams` at once, a chunk every `gap_us` in each, all together or spread over the gap."""

    streams: int
    mode: str
    gap_us: int

    @property
    def offered(self) -> int:
        return round(self.streams * 1e6 / self.gap_us)

    @property
    def chunks(self) -> int:
        return round(SECONDS_A_ROUND * 1e6 / self.gap_us)


class ClientFailedError(Exception):
    """A client did not get through a case."""


@dataclass(frozen=True)
class Client:
    """A script under clients/, and the Python that runs it. `repeat` 0: as often as asked."""

    name: str
    script: str
    python: Path
    env: Mapping[str, str] = field(default_factory=dict)
    repeat: int = 0


@dataclass(frozen=True)
class Row:
    """One line of the table. `rate`: chunks per second received, 0 where the client failed.
    `merged`: -1 where it cannot tell.
    """

    client: str
    version: str
    streams: int
    mode: str
    offered: int
    rate: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    cpu_ms_per_1k: float
    merged: int
    chunks: int
    server_late_p99_ms: float


EVERYONE = [Case(n, mode, 20_000) for n in (64, 512) for mode in ("staggered", "lockstep")]
# Columns to be first in: 1 the less the better, -1 the more.
COLUMNS = {"rate": -1, "p50_ms": 1, "p99_ms": 1, "max_ms": 1, "cpu_ms_per_1k": 1}
OURS_ALONE = [Case(512, "staggered", 5_689)]


def build_pulse() -> Path:
    """Compile the server."""
    BUILD.mkdir(exist_ok=True)
    binary = BUILD / "pulse"
    argv = ["cc", "-O2", "-Wall", "-Wextra", "-o", str(binary), str(HERE / "pulse.c")]
    subprocess.run(argv, check=True)
    return binary


def raise_priority(pid: int) -> bool:
    """Let the process go before ordinary ones; whether the system allowed it."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, pid, -20)
        return True
    return False


@contextlib.contextmanager
def serving(binary: Path, case: Case, cpu: int) -> Iterator[int]:
    """pulse on a core of its own for the length of the block; its port."""
    port = free_port("127.0.0.1")
    gap = str(case.gap_us * 1000)
    argv = [str(binary), "-p", str(port), "-g", gap, "-f", gap, "-m", case.mode, "-w"]
    with on_cpus((cpu,)):
        server = subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True)
    raise_priority(server.pid)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError):
                ask(port, "/health")
                break
            time.sleep(0.02)
        yield port
    finally:
        server.terminate()
        server.wait()


def ask(port: int, path: str) -> bytes:
    """One GET of the server."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", path)
        return connection.getresponse().read()


def measure(client: Client, case: Case, binary: Path, cpus: tuple[int, int]) -> Row:
    """Run one case once."""
    out, said = BUILD / "bench-result.json", BUILD / f"bench-{client.name}.log"
    path = os.pathsep.join([str(ROOT), str(HERE)])
    with serving(binary, case, cpus[0]) as port:
        numbers = [port, case.streams, ROUNDS, case.chunks]
        script = str(HERE / "clients" / client.script)
        argv = [str(client.python), script, *map(str, numbers), str(out)]
        with on_cpus((cpus[1],)), said.open("wb") as errors:
            process = subprocess.Popen(
                argv,
                env={**os.environ, **client.env, "PYTHONPATH": path},
                start_new_session=True,
                stderr=errors,
            )
        raise_priority(process.pid)
        try:
            status = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        if status:
            raise ClientFailedError(f"{client.name}: exit {status}, {cause(said)}")
        truth = {
            name: [int(t) for t in times]
            for name, *times in (line.split() for line in ask(port, "/truth").decode().splitlines())
        }
        summary = json.loads(ask(port, "/truth/summary"))
    return judged(client, case, json.loads(out.read_text()), truth, summary)


def cause(said: Path) -> str:
    """The error that a Python client ended with, and where all it said stands."""
    lines = [line for line in said.read_text(errors="replace").splitlines() if "Error" in line]
    return f"{lines[-1].strip() if lines else 'no error told'} ({said.relative_to(ROOT)})"


def best(client: Client, case: Case, binary: Path, cpus: tuple[int, int], repeat: int) -> Row:
    """The client's best run; a row of rate 0 where it failed in all."""
    runs = []
    for _ in range(repeat):
        try:
            runs.append(measure(client, case, binary, cpus))
        except ClientFailedError as error:
            print(error, file=sys.stderr)
    failed = Row(
        client.name, "failed", case.streams, case.mode, case.offered, 0, *[0.0] * 4, -1, 0, 0.0
    )
    return min(runs, key=lambda row: (row.merged, row.p99_ms), default=failed)


def judged(
    client: Client, case: Case, result: dict, truth: dict[str, list[int]], summary: dict
) -> Row:
    """Hold a client's stamps against the truth."""
    errors: list[int] = []
    upper = result["upper"]
    which = result["which"]
    for name, stamps in result["stamps"].items():
        sent = truth[name] if which is None else [truth[name][i] for i in which]
        if len(sent) != len(stamps):
            raise ClientFailedError(f"{client.name}: {len(stamps)} chunks of {len(sent)} in {name}")
        late = set(upper[name]) if upper is not None else set()
        errors += [
            stamp - true
            for i, (stamp, true) in enumerate(zip(stamps, sent, strict=True))
            if i not in late
        ]
    every = [stamp for stamps in result["stamps"].values() for stamp in stamps]
    chunks = sum(len(truth[name]) for name in result["stamps"])
    errors.sort()
    return Row(
        client.name,
        result["version"],
        case.streams,
        case.mode,
        case.offered,
        round(chunks * 1e9 / (max(every) - min(every))),
        *(round(rank(errors, p) / 1e6, 4) for p in (50, 99, 100)),
        round(result["cpu_ns"] / chunks / 1e3, 2),
        -1 if upper is None else sum(map(len, upper.values())),
        chunks,
        round(summary["late_p99_ns"] / 1e6, 3),
    )


def rank(ordered: Sequence[int], percent: int) -> int:
    """The nearest-rank percentile."""
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def table(rows: Sequence[Row]) -> str:
    """The rows for people."""
    heads = (
        "client", "streams", "mode", "offered/s", "received/s", "error p50 ms", "p99 ms",
        "max ms", "CPU ms per 1k", "merged", "server late p99 ms",
    )  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for r in rows:
        merged = "?" if r.merged < 0 else f"{r.merged}"
        cells = (
            f"{r.client} ({r.version})", r.streams, r.mode, r.offered, r.rate, f"{r.p50_ms:.4f}",
            f"{r.p99_ms:.4f}", f"{r.max_ms:.3f}", f"{r.cpu_ms_per_1k:.1f}", merged,
            f"{r.server_late_p99_ms:.3f}",
        )  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def others(asked: argparse.Namespace) -> Iterator[Client]:
    """The clients that are not ours; those that cannot be had are named on stderr."""
    wanted = set(asked.only or ["aiohttp", "vllm", "httpx"])
    if wanted & {"aiohttp", "vllm", "httpx"}:
        python = peers.http_python()
        vllm = peers.vllm_request_function(python, download=asked.download_vllm)
        env = {"BENCH_VLLM_FILE": str(vllm), "BENCH_VLLM_VERSION": peers.VLLM}
        for name in ("aiohttp", "vllm", "httpx"):
            yield Client(name, f"with_{name}.py", python, env)
    for tool in peers.TOOLS:
        if asked.peers or tool.name in wanted:
            try:
                env = peers.tool(tool)
            except peers.PeerAbsentError as error:
                print(f"left out: {error}", file=sys.stderr)
            else:
                yield Client(tool.name, tool.script, Path(sys.executable), env, repeat=1)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description="Compare clients against a server of known times.")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each case")
    parser.add_argument("--only", action="append", help="ours, aiohttp, httpx, vllm or a tool")
    parser.add_argument("--peers", action="store_true", help="guidellm, aiperf, inference-perf too")
    parser.add_argument("--download-vllm", action="store_true", help="not from an engine here")
    asked = parser.parse_args(argv)
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise SystemExit("two processors are needed, one for the server and one for the client")
    binary, clients = build_pulse(), [Client("ours", "ours.py", Path(sys.executable))]
    clients += others(asked)
    rows = []
    for client in clients:
        if asked.only and client.name not in asked.only:
            continue
        for case in EVERYONE + (OURS_ALONE if client.name == "ours" else []):
            repeat = client.repeat or asked.repeat
            rows.append(best(client, case, binary, (cpus[0], cpus[1]), repeat))
            print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    rows.sort(key=lambda row: (row.offered, row.mode, row.p99_ms or math.inf))
    text = table(rows) + "\n" + standing(rows)
    (BUILD / "bench.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    (BUILD / "bench.md").write_text(text)
    (BUILD / "bench.svg").write_text(svg(rows))
    print(text, end="")
    return 0


def standing(rows: Sequence[Row]) -> str:
    """Where ours is not first, in words; a client that failed takes no part."""
    if all(row.client != "ours" for row in rows):
        return "Ours did not take part.\n"
    said = []
    for mine in (row for row in rows if row.client == "ours" and row.rate):
        case = (mine.streams, mine.mode, mine.offered)
        beside = [r for r in rows if (r.streams, r.mode, r.offered) == case and r.rate]
        for column, sign in COLUMNS.items():
            best_row = min(beside, key=lambda row: sign * getattr(row, column))
            if sign * getattr(best_row, column) < sign * getattr(mine, column):
                said.append(
                    f"- {mine.streams} streams {mine.mode}, {column}: {best_row.client} "
                    f"{getattr(best_row, column)}, ours {getattr(mine, column)}"
                )
    if not said:
        return "Ours is first in every column.\n"
    return "Ours is first in every column but these:\n\n" + "\n".join(said) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
