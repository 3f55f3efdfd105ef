"""How long all claims of a study take, from verified bytes to printed values.

`python -m tests.bench.bench_claims [--chunks N]` makes a sealed run of N chunks, 250 to a request,
evaluates every claim on it in a process of its own, and writes build/bench-claims.json: CPU and
wall seconds, peak memory, and the plain decoding of the same bytes as the least there is to do.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from analysis.claiming.evaluation import evaluate_project
from records import canonical, chain, schema
from records.measurement import Request
from records.plan import Plan
from records.seal import write_seal
from tests import sealed_run

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "bench-claims.json"
CHUNKS_A_REQUEST = 250
REQUESTS_A_LINE = 100
KINDS_OF_LINES = 8
MS = 1_000_000


def _request(index: int, like: Request) -> Request:
    draw = random.Random(index)
    gaps = [20 * MS + draw.randrange(5 * MS) for _ in range(CHUNKS_A_REQUEST)]
    times = [sum(gaps[: i + 1]) for i in range(CHUNKS_A_REQUEST)]
    tokens = (1, *(draw.randrange(1, 6) for _ in range(CHUNKS_A_REQUEST - 1)))
    return replace(
        like,
        index=index,
        ramp=False,
        first_byte_ns=times[0],
        end_ns=times[-1] + 1000,
        chunk_ns=tuple(times),
        chunk_tokens=tokens,
        completion_tokens=sum(tokens),
        step_accepted=tuple(n - 1 for n in tokens[1:]),
    )


def batches() -> list[list[object]]:
    """A few different lines' worth of requests: to draw each anew would take minutes."""
    like = sealed_run.request(0, 1, 4)
    made = (
        [_request(REQUESTS_A_LINE * kind + i, like) for i in range(REQUESTS_A_LINE)]
        for kind in range(KINDS_OF_LINES)
    )
    return [
        schema.encode(schema.WindowRequests("", "", tuple(requests)))[1]["requests"]
        for requests in made
    ]


def _grown(journal: Path, lines_a_window: int) -> Iterator[tuple[str, object]]:
    """The events of a small journal, with its requests replaced by many more."""
    drawn = batches()
    for line in journal.read_bytes().splitlines():
        event = json.loads(line)
        if event["type"] != "window.requests":
            yield event["type"], event["value"]
        elif event["value"]["requests"] and event["value"]["requests"][0]["index"] == 0:
            for number in range(lines_a_window):
                yield event["type"], {**event["value"], "requests": drawn[number % len(drawn)]}


def make_project(root: Path, chunks: int) -> Path:
    """A project with one sealed run of about so many chunks; its journal."""
    plan: Plan = sealed_run.small_plan()
    run = sealed_run.make_run(
        root / "records" / "data" / "run-1", plan, sealed_run.Shape(seal=False)
    )
    windows = len(plan.windows) * len(plan.arms) * plan.blocks
    lines = max(1, chunks // (windows * CHUNKS_A_REQUEST * REQUESTS_A_LINE))
    state, data = chain.EMPTY, []
    for type_, value in _grown(run.events, lines):
        body = canonical.encode_trusted({"type": type_, "value": value})[1:]
        head = f'{{"prev":"{state.head}","seq":{state.lines},"t_ns":{state.lines + 1},'
        data.append(head.encode() + body + b"\n")
        state = chain.extend(state, data[-1])
    run.events.write_bytes(b"".join(data))
    write_seal(run.path, "run-1", state)
    (root / "paper").mkdir()
    (root / "paper" / "evidence.toml").write_text(
        f'[study.small]\nplan = "test-plan"\n[study.small.runs]\n"run-1" = "{run.seal_digest}"\n'
    )
    return run.events


def measure(root: Path) -> dict[str, float]:
    """Evaluate every claim, then decode the same lines and nothing else."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = evaluate_project(root, root / "records" / "data")
    took = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cpu = time.process_time()
    with (root / "records" / "data" / "run-1" / "events.jsonl").open("rb") as file:
        for line in file:
            json.loads(line)
    return {
        "claims": len(found.values),
        **took,
        "peak_mib": peak,
        "decode_only_cpu_s": time.process_time() - cpu,
    }


def main() -> None:
    """Make, measure in a fresh process, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000_000)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    with TemporaryDirectory() as directory:
        journal = make_project(Path(directory), options.chunks)
        row = {"chunks": options.chunks, "journal_mib": journal.stat().st_size / 2**20}
        argv = [sys.executable, "-m", "tests.bench.bench_claims", "--measure", directory]
        row |= json.loads(subprocess.run(argv, cwd=ROOT, check=True, capture_output=True).stdout)
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps([row], indent=2) + "\n")
    for name, value in row.items():
        print(f"{name:>20}  {value:,.2f}" if isinstance(value, float) else f"{name:>20}  {value:,}")


if __name__ == "__main__":
    main()
