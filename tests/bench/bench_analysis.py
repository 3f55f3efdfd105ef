"""How long the tables of a large run take, and in how much memory, from verified bytes to files.

`python -m tests.bench.bench_analysis [--chunks N,N]` makes a sealed run for each size, and measures
in processes of their own: all tables the first time, the cache made on the way; the same again from
the cache; all requests held in memory, where the size allows; and two peers over the same chunks:
plain decoding of the journal's JSON, and pandas with the journal as Parquet, one row a chunk, the
gaps and their percentiles. Writes build/bench-analysis.json: seconds, CPU seconds, peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.publish import table_files
from analysis.reading import Run, read_run
from analysis.streaming.large_run import read_run_in_batches
from analysis.tables import study_tables
from records import canonical, chain, schema
from records.run_directory import RunDirectory
from records.seal import write_seal
from tests import sealed_run
from tests.bench.bench_claims import CHUNKS_A_REQUEST, REQUESTS_A_LINE, batches

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "bench-analysis.json"
SIZES = "1000000,4000000"
# What is held for a chunk while tables are made of a run in memory is some 60 bytes.
MOST_IN_MEMORY = 12_000_000
MOST_IN_PANDAS = 30_000_000


def make_run(directory: Path, chunks: int) -> RunDirectory:
    """A sealed run of about so many chunks, written line by line."""
    run = sealed_run.make_run(
        directory / "run-1", sealed_run.small_plan(), sealed_run.Shape(seal=False)
    )
    plan = sealed_run.small_plan()
    windows = len(plan.windows) * len(plan.arms) * plan.blocks
    a_line = CHUNKS_A_REQUEST * REQUESTS_A_LINE
    lines = max(1, chunks // (windows * a_line))
    made = batches()
    small = run.events.read_bytes().splitlines()
    state = chain.EMPTY
    with run.events.open("wb") as file:
        for text in small:
            event = json.loads(text)
            values = [event["value"]]
            if event["type"] == schema.WindowRequests.TYPE:
                if event["value"]["requests"][0]["index"]:
                    continue
                values = [{**event["value"], "requests": made[i % len(made)]} for i in range(lines)]
            for value in values:
                body = canonical.encode_trusted({"type": event["type"], "value": value})[1:]
                head = f'{{"prev":"{state.head}","seq":{state.lines},"t_ns":{state.lines + 1},'
                line = head.encode() + body + b"\n"
                file.write(line)
                state = chain.extend(state, line)
    write_seal(run.path, "run-1", state)
    return run


def first(directory: Path) -> int:
    """All tables; the cache is made on the way."""
    return _tables(read_run_in_batches(_run(directory), directory / "cache", large_bytes=0))


def again(directory: Path) -> int:
    """All tables, the requests out of the cache."""
    return first(directory)


def in_memory(directory: Path) -> int:
    """All tables, every request held."""
    return _tables(read_run(_run(directory)))


def decode_only(directory: Path) -> int:
    """The journal's lines decoded one after the other, and nothing else."""
    with _run(directory).events.open("rb") as file:
        return sum(len(json.loads(line)) for line in file)


def with_pandas(directory: Path) -> int:
    """Gaps of all chunks and three percentiles of them by boot and window, from flat Parquet."""
    frame = pd.read_parquet(directory / "chunks.parquet")
    gaps = frame.groupby("request", sort=False)["t_ns"].diff()
    found = gaps.groupby([frame["window"]]).quantile([0.5, 0.95, 0.99])
    return len(found)


CASES: dict[str, Callable[[Path], int]] = {
    "first": first,
    "again": again,
    "in-memory": in_memory,
    "json-decode": decode_only,
    "pandas": with_pandas,
}


def flatten(directory: Path) -> None:
    """The run's chunks as a Parquet file for the peer, one row a chunk."""
    run = read_run_in_batches(_run(directory), directory / "cache", large_bytes=0)
    fields = [("window", pa.int32()), ("request", pa.int64()), ("t_ns", pa.int64())]
    request = 0
    with pq.ParquetWriter(directory / "chunks.parquet", pa.schema(fields)) as writer:
        for number, window in enumerate(w for boot in run.boots for w in boot.windows):
            for part in window.source.batches():
                counts = part.chunks.chunk_counts()
                ids = pd.RangeIndex(request, request + len(part)).repeat(counts)
                request += len(part)
                windows = pa.repeat(pa.scalar(number, pa.int32()), len(ids))
                writer.write_table(
                    pa.table(
                        [windows, ids.to_numpy(), part.chunks.chunk_ns], [n for n, _ in fields]
                    )
                )


def _run(directory: Path) -> RunDirectory:
    return RunDirectory(directory / "run-1")


def _tables(run: Run) -> int:
    return sum(map(len, table_files(study_tables([run])).values()))


def measure(case: str, directory: Path) -> dict[str, float]:
    """One case in this process: seconds, CPU seconds, peak MiB."""
    wall, cpu = time.perf_counter(), time.process_time()
    CASES[case](directory)
    return {
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def bench(chunks: int, scratch: Path) -> list[dict[str, object]]:
    """Every case that this size allows, one after the other."""
    rows: list[dict[str, object]] = []
    with TemporaryDirectory(dir=scratch) as name:
        directory = Path(name)
        journal = make_run(directory, chunks).events.stat().st_size
        for case in CASES:
            if chunks > {"in-memory": MOST_IN_MEMORY, "pandas": MOST_IN_PANDAS}.get(case, chunks):
                continue
            if case == "pandas":
                flatten(directory)
            argv = [sys.executable, "-m", "tests.bench.bench_analysis", "--measure", case, name]
            done = subprocess.run(argv, cwd=ROOT, check=True, stdout=subprocess.PIPE)
            row = {"case": case, "chunks": chunks, "journal_mib": journal / 2**20}
            rows.append(row | json.loads(done.stdout))
            _show(rows[-1])
        cached = sum(path.stat().st_size for path in directory.glob("cache/*/*")) / 2**20
        print(f"{'':12}the cache is {cached:,.0f} MiB, the journal {journal / 2**20:,.0f} MiB")
    return rows


def _show(row: dict[str, object]) -> None:
    print(
        f"{row['case']:<12}{row['chunks']:>13,}{row['wall_s']:>10.2f}{row['cpu_s']:>10.2f}"
        f"{row['peak_mib']:>10.0f}",
        flush=True,
    )


def main() -> None:
    """Make, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", default=SIZES, help=f"sizes [{SIZES}]")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], Path(options.measure[1]))))
        return
    OUTPUT.parent.mkdir(exist_ok=True)
    print(f"{'':12}{'chunks':>13}{'wall s':>10}{'CPU s':>10}{'peak MiB':>10}")
    rows = [row for size in options.chunks.split(",") for row in bench(int(size), OUTPUT.parent)]
    OUTPUT.write_text(json.dumps(rows, indent=2) + "\n")
    _ratios(rows)


def _ratios(rows: list[dict[str, object]]) -> None:
    """Each case over the plain decoding of the same bytes, in CPU seconds."""
    least = {row["chunks"]: row["cpu_s"] for row in rows if row["case"] == "json-decode"}
    for row in rows:
        ratio = row["cpu_s"] / least[row["chunks"]]
        print(f"{row['case']:<12}{row['chunks']:>13,}  {ratio:.2f} times json-decode")


if __name__ == "__main__":
    main()
