"""The processes of a window's client: how they share it, what they keep, and how they end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from records.errors import ClientCrashError, HostUnfitError
from records.load import Load
from records.measurement import Request
from remote.client.schedule import due_times
from remote.client.window import Target, measure
from remote.client.wire_log import LogSize
from remote.reference.launch import Launched
from tests.remote.measured_window import Bodies, reference_server, window

ONE_CORE = min(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def server() -> Iterator[Launched]:
    with reference_server() as launched:
        yield launched


def test_workers_share_one_budget(server: Launched, tmp_path: Path) -> None:
    load = Load("closed", 6, requests=40)
    cpus = (ONE_CORE,) * 3
    requests, result = window(server.port, load, tmp_path, cpus=cpus, capacity_chunks_per_s=800)
    assert result.report.workers == 3
    assert [r.index for r in requests] == list(range(40))
    assert {r.outcome for r in requests} == {"completed"}


def test_workers_share_one_schedule(server: Launched, tmp_path: Path) -> None:
    load = Load("poisson", 6, rate_millihertz=300_000, requests=40)
    cpus = (ONE_CORE,) * 2
    requests, result = window(server.port, load, tmp_path, cpus=cpus, capacity_chunks_per_s=1_200)
    assert result.report.workers == 2
    assert [r.scheduled_ns for r in requests] == list(due_times(load, 1))


def test_memory_stays_while_the_log_goes_to_disk(server: Launched, tmp_path: Path) -> None:
    """30,000 chunks are 11 MB of log; with 256 KiB of it in memory the process hardly grows."""
    small = LogSize(1 << 17, 1)
    bodies = Bodies(lambda _: {"ttft": "0ns", "gap": "0ns"}, 1_000)
    loads = [Load("closed", 2, requests=n) for n in (2, 30)]
    peaks, seen = [], []
    for load in loads:
        counts: list[int] = []

        def count(batch: Sequence[Request], counts: list[int] = counts) -> None:
            counts.append(sum(len(r.chunk_ns) for r in batch))

        result = measure(
            Target("/v1/completions", port=server.port), bodies, load,
            seed=0, sink=count, cpus=None, spill_dir=tmp_path, log_size=small,
        )  # fmt: skip
        peaks.append(result.report.peak_rss_bytes)
        seen.append((result.report.chunks, sum(counts)))
        assert result.report.received_bytes > 300 * result.report.chunks
    assert seen == [(2_000, 2_000), (30_000, 30_000)]
    assert peaks[1] - peaks[0] < 4 << 20
    assert list(tmp_path.iterdir()) == []


def test_a_processor_that_is_not_there(server: Launched, tmp_path: Path) -> None:
    with pytest.raises(HostUnfitError, match="processor 4095"):
        window(server.port, Load("closed", 1, requests=1), tmp_path, cpus=(4095,))


def test_a_sink_that_raises_leaves_no_worker(server: Launched, tmp_path: Path) -> None:
    def full(_: Sequence[Request]) -> None:
        raise OSError("sink")

    before = children()
    with pytest.raises(OSError, match="sink"):
        window(server.port, Load("closed", 1, requests=1), tmp_path, sink=full)
    assert children() == before


def test_a_worker_that_is_killed_is_an_error(server: Launched, tmp_path: Path) -> None:
    class Fatal(Bodies):
        def body(self, index: int) -> bytes:  # called in the worker's process
            os.kill(os.getpid(), signal.SIGKILL)
            return b""

    before = children()
    with pytest.raises(ClientCrashError, match="ended without a word"):
        window(server.port, Load("closed", 1, requests=1), tmp_path, Fatal())
    assert children() == before


def test_a_worker_does_not_outlive_its_parent(server: Launched, tmp_path: Path) -> None:
    parent = os.fork()
    if parent == 0:
        bodies = Bodies(lambda _: {"ttft": "1ms", "gap": "20ms"}, 10_000)
        window(server.port, Load("closed", 2, duration_ms=600_000), tmp_path, bodies)
        os._exit(0)
    worker = ""
    while not worker:
        time.sleep(0.02)
        worker = " ".join(children_of(Path(f"/proc/{parent}/task/{parent}")))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    while running(worker):  # the test's own time limit ends a wait in vain
        time.sleep(0.02)


def running(pid: str) -> bool:
    """Whether a process exists and is no zombie (proc(5), the state behind the name)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def children() -> set[str]:
    return {pid for task in Path("/proc/self/task").iterdir() for pid in children_of(task)}


def children_of(task: Path) -> list[str]:
    return (task / "children").read_text().split()
