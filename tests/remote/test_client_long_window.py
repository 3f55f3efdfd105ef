"""A window of 750,000 chunks: memory as for an eighth of it, the rest on disk, then gone.

A window of hours differs from this one in its number of chunks alone: two hours at 10,000 chunks/s
are 72 million, of which the process holds what is here held of these.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from records.load import Load
from records.measurement import ClientReport, Request
from remote.client.window import Target, measure

SOURCE = Path(__file__).parents[1] / "bench/pulse.c"
COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
STREAMS, CHUNKS = 64, 500
SHORT, LONG = 200, 1500  # requests: 100,000 and 750,000 chunks
BYTES_PER_MILLION = 400_000_000  # as remote/client/wire_log.py promises


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    binary = tmp_path_factory.mktemp("pulse") / "pulse"
    subprocess.run([str(COMPILER), "-O2", "-o", str(binary), str(SOURCE)], check=True)
    argv = [str(binary), "-p", "0", "-g", "1000000", "-f", "1000000", "-s", "1000"]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    yield int(server.stdout.readline().rsplit(":", 1)[1])
    server.terminate()
    server.communicate()


class Body:
    """The same short request, every time."""

    def body(self, _index: int) -> bytes:
        asked = {"prompt": "a", "max_tokens": CHUNKS, "stream": True, "return_token_ids": True}
        usage = {"include_usage": True, "continuous_usage_stats": True}
        return json.dumps(asked | {"stream_options": usage}).encode()


def run(port: int, requests: int, directory: Path) -> tuple[ClientReport, int]:
    """The report of a window, and how much of its log lay on disk when it had ended."""
    chunks, spilled = 0, -1

    def count(batch: Sequence[Request]) -> None:
        nonlocal chunks, spilled
        if spilled < 0:  # the window is over, its log whole
            spilled = open_bytes(directory)
        chunks += sum(len(r.chunk_ns) for r in batch)

    load = Load("closed", STREAMS, requests=requests)
    target = Target("/v1/completions", port=port)
    report = measure(
        target, Body(), load, seed=0, sink=count, cpus=None, spill_dir=directory
    ).report
    assert (report.completed, report.chunks) == (requests, requests * CHUNKS)
    assert chunks == report.chunks
    return report, spilled


def open_bytes(directory: Path) -> int:
    """Bytes in files without a name that children of this process keep open in `directory`."""
    total = 0
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            for link in Path(f"/proc/{child}/fd").iterdir():
                with suppress(FileNotFoundError):
                    if str(link.readlink()).startswith(f"{directory}/"):
                        total += link.stat().st_size
    return total


@pytest.mark.long
def test_a_window_of_any_length_stays_in_the_same_memory(port: int, tmp_path: Path) -> None:
    short, _ = run(port, SHORT, tmp_path)
    long, spilled = run(port, LONG, tmp_path)
    grown = long.peak_rss_bytes - short.peak_rss_bytes
    print(f"peak RSS {short.peak_rss_bytes >> 20} -> {long.peak_rss_bytes >> 20} MiB", end=" ")
    print(f"at {short.chunks} -> {long.chunks} chunks, {spilled >> 20} MiB on disk")
    assert grown < 8 << 20  # of 13 bytes a chunk and up
    assert 0 < spilled < BYTES_PER_MILLION * long.chunks // 1_000_000
    assert list(tmp_path.iterdir()) == []
