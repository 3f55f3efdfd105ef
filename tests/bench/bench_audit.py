"""How fast an audit is: bytes against sha256sum, in proportion to size, in how much memory.

All times are processor time, of one core: on an idle machine they are what a clock shows, and on a
busy one they still say what the work costs.

`python -m tests.bench.bench_audit [--mb 50,200,800] [--disk DIR]` makes sealed runs of these sizes,
prints a table and writes build/bench-audit.json. Integrity is chain and seal, every byte of a run;
it takes turns with sha256sum over the same files, and the median of its rounds counts. The whole
audit and the incremental one, in which meaning is known, are timed once a size. Each is a process
of its own, so that its peak of resident memory is its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from audit.checks import chain, seal
from audit.repository import RepositoryView
from audit.runner import audit
from audit.trust import Context
from records import schema
from records.chain import EMPTY, extend, make_line
from records.measurement import Request
from records.seal import write_seal
from tests import sealed_run

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "bench-audit.json"
ROUNDS = 5
SIZES_MB = "50,200,800"
_MB = 1_000_000
_BATCH = 64
_OUTPUT_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Row:
    """One size. Throughput in MB/s, times in seconds, peaks of resident memory in MB."""

    megabytes: float
    chunks: int
    sha256sum: float
    integrity: float
    ratio_percent: float
    integrity_peak_mb: float
    full_s: float
    full_peak_mb: float
    incremental_s: float


def make_large_run(data: Path, size_bytes: int) -> tuple[Path, int]:
    """A sealed run of about this size, in one window; its directory and number of chunks.

    Written without an fsync a line, and the batches of requests alike but for seq, time and prev:
    neither is what is measured here.
    """
    directory = data / "large"
    small = sealed_run.make_run(data / "small", sealed_run.small_plan(1, 1), sealed_run.Shape())
    state, chunks, now = EMPTY, 0, 0
    with (directory.parent / "events").open("wb", buffering=1 << 20) as file:
        for envelope in small.read():
            event, now = envelope.event, envelope.t_ns
            if isinstance(event, schema.RunStarted):
                event = replace(event, run_id="large")
            line = make_line(state, now, *schema.encode(event))
            file.write(line)
            state = extend(state, line)
            if isinstance(event, schema.WindowRequests) and chunks == 0:
                batch = replace(event, requests=tuple(_request(i) for i in range(_BATCH)))
                tail = make_line(EMPTY, now, *schema.encode(batch)).partition(b'"t_ns":')[2]
                while state.bytes < size_bytes:
                    opening = f'{{"prev":"{state.head}","seq":{state.lines},"t_ns":'
                    line = opening.encode() + tail
                    file.write(line)
                    state = extend(state, line)
                    chunks += _BATCH * _OUTPUT_TOKENS
    shutil.rmtree(small.path)
    directory.mkdir()
    (directory.parent / "events").rename(directory / "events.jsonl")
    write_seal(directory, directory.name, state)
    return directory, chunks


def _request(index: int) -> Request:
    """512 chunks, 20 ms and some thousand ns apart, as a real one has."""
    base = sealed_run.request(index, 1, 0)
    times = tuple(
        10**8 + i * 20_000_000 + (i * 7919 + index * 104729) % 997_001
        for i in range(_OUTPUT_TOKENS)
    )
    return replace(
        base,
        chunk_ns=times,
        chunk_tokens=(1,) * _OUTPUT_TOKENS,
        completion_tokens=_OUTPUT_TOKENS,
        end_ns=times[-1] + 1000,
    )


def _children_s() -> float:
    """Processor time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _child(task: str, data: Path) -> tuple[float, float]:
    """Seconds and peak MB of a task in a process of its own."""
    argv = [sys.executable, "-m", "tests.bench.bench_audit", "--child", task, "--data", str(data)]
    done = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True)
    seconds, peak = json.loads(done.stdout)
    return seconds, peak


def _work(task: str, data: Path) -> None:
    """In the child: do it, and print seconds and peak MB."""
    checks = (chain.CHECK, seal.CHECK)
    root = data.parent.parent
    trusted = frozenset({_key(root, data)}) if task == "incremental" else frozenset()
    start = time.process_time()
    if task == "integrity":
        report = audit(root, data, checks)
        assert not report.findings, report.findings
    else:
        report = audit(root, data, trusted=trusted)
        assert task != "incremental" or report.known
    seconds = time.process_time() - start
    print(json.dumps([seconds, _peak_bytes() / _MB]))


def _peak_bytes() -> int:
    """This process's own peak. Not ru_maxrss, into which exec carries the parent's (fs/exec.c)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if "VmHWM" in line)


def _key(root: Path, data: Path) -> str:
    """The key of the made run: one huge window breaks its small plan, so that it is not clean."""
    (run,) = RepositoryView(root, data).runs
    return Context.of(root).key(run)


def measure(top: Path, megabytes: int) -> Row:
    """One size."""
    data = top / str(megabytes) / "records" / "data"
    data.mkdir(parents=True)
    directory, chunks = make_large_run(data, megabytes * _MB)
    files = [str(path) for path in sorted(directory.rglob("*")) if path.is_file()]
    size = sum(Path(file).stat().st_size for file in files) / _MB
    rounds = []
    for _ in range(ROUNDS if megabytes < 1000 else 3):
        start = _children_s()
        subprocess.run(["sha256sum", *files], check=True, stdout=subprocess.DEVNULL)
        theirs = _children_s() - start
        rounds.append((theirs, *_child("integrity", data)))
    theirs, ours = (statistics.median(r[i] for r in rounds) for i in (0, 1))
    full_s, full_peak = _child("full", data)
    incremental_s, _ = _child("incremental", data)
    return Row(
        round(size, 1),
        chunks,
        round(size / theirs),
        round(size / ours),
        round(100 * theirs / ours, 1),
        round(max(r[2] for r in rounds), 1),
        round(full_s, 2),
        round(full_peak, 1),
        round(incremental_s, 2),
    )


def main(arguments: Sequence[str]) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", default=SIZES_MB, help="sizes in MB, joined by commas")
    parser.add_argument("--disk", type=Path, default=OUTPUT.parent, help="where runs are made")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        _work(options.child, options.data)
        return
    options.disk.mkdir(exist_ok=True)
    OUTPUT.parent.mkdir(exist_ok=True)
    rows = []
    head = ("MB", "chunks", "sha256sum MB/s", "integrity MB/s", "ratio %", "peak MB")
    head += ("full s", "full peak MB", "incremental s")
    print("  ".join(f"{name:>14}" for name in head))
    for megabytes in map(int, options.mb.split(",")):
        with TemporaryDirectory(dir=options.disk) as name:
            row = measure(Path(name), megabytes)
        rows.append(asdict(row))
        print("  ".join(f"{value:>14,}" for value in rows[-1].values()), flush=True)
    OUTPUT.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
