"""How fast records are written and checked, against the least that could do the same.

`python tests/bench/bench_records.py [--mib N] [--events N]` prints a table and writes
build/bench-records.json. The two sides of a row take turns over the same bytes on the same disk;
of each side the median of its rounds counts, so that a busy machine slows both alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from records import chain, schema
from records.journal import Journal

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "bench-records.json"
LINE_BYTES = (300, 4 << 10, 64 << 10)
ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison; `ratio_percent` is ours over the baseline, above 100 where ours is faster."""

    what: str
    line_bytes: int
    unit: str
    ours: float
    baseline: str
    theirs: float

    @property
    def ratio_percent(self) -> float:
        return 100 * self.ours / self.theirs


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) / 1e9


def _alternate(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(ROUNDS)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def _event(line_bytes: int) -> schema.HostObserved:
    empty = schema.HostObserved("start", "", {})
    room = line_bytes - len(chain.make_line(chain.EMPTY, 10**15, *schema.encode(empty)))
    return schema.HostObserved("start", "x" * max(0, room), {})


def _append(path: Path, event: schema.HostObserved, count: int) -> None:
    path.unlink(missing_ok=True)
    with Journal.create(path) as journal:
        for _ in range(count):
            journal.append(event)


def _write_and_fsync(path: Path, lines: list[bytes]) -> None:
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        for line in lines:
            os.write(fd, line)
            os.fsync(fd)
    finally:
        os.close(fd)


def bench_append(directory: Path, line_bytes: int, count: int) -> Row:
    """Journal.append against write and fsync of the same lines."""
    event, path = _event(line_bytes), directory / "append.jsonl"
    _append(path, event, count)
    lines = path.read_bytes().splitlines(keepends=True)
    ours, theirs = _alternate(
        lambda: _append(path, event, count),
        lambda: _write_and_fsync(directory / "plain", lines),
    )
    return Row(
        "journal append", line_bytes, "events/s", count / ours, "write + fsync", count / theirs
    )


def bench_verify(directory: Path, line_bytes: int, total_bytes: int) -> Row:
    """chain.verify against sha256sum, both reading the same file from the page cache."""
    path, state = directory / "verify.jsonl", chain.EMPTY
    kind, value = schema.encode(_event(line_bytes))
    with path.open("wb") as file:
        while state.bytes < total_bytes:
            line = chain.make_line(state, 10**15, kind, value)
            file.write(line)
            state = chain.extend(state, line)

    def verify() -> None:
        with path.open("rb") as file:
            lines = iter(lambda: file.readline(chain.MAX_LINE_BYTES), b"")
            assert chain.verify(lines, head=state.head, length=state.lines) == state

    ours, theirs = _alternate(
        verify,
        lambda: subprocess.run(["sha256sum", str(path)], stdout=subprocess.DEVNULL, check=True),
    )
    megabytes = state.bytes / 1e6
    return Row(
        "chain verification", line_bytes, "MB/s", megabytes / ours, "sha256sum", megabytes / theirs
    )


def main(arguments: list[str]) -> list[Row]:
    """Measure, print the table, write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=64, help="bytes verified a row, in MiB")
    parser.add_argument("--events", type=int, default=300, help="events appended a row")
    options = parser.parse_args(arguments)
    OUTPUT.parent.mkdir(exist_ok=True)
    # Beside the output: /tmp may be memory, where fsync costs nothing.
    with TemporaryDirectory(dir=OUTPUT.parent) as name:
        directory = Path(name)
        rows = [bench_append(directory, size, options.events) for size in LINE_BYTES]
        rows += [bench_verify(directory, size, options.mib << 20) for size in LINE_BYTES]
    print(
        f"{'':20}{'line bytes':>12}{'ours':>12}{'baseline':>12}  {'unit':10}{'of':16}{'ratio':>6}"
    )
    for row in rows:
        print(
            f"{row.what:20}{row.line_bytes:>12,}{row.ours:>12,.0f}{row.theirs:>12,.0f}"
            f"  {row.unit:10}{row.baseline:16}{row.ratio_percent:>5.0f}%"
        )
    table = [asdict(row) | {"ratio_percent": round(row.ratio_percent, 1)} for row in rows]
    OUTPUT.write_text(json.dumps(table, indent=2) + "\n")
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
