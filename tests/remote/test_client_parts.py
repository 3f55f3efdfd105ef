"""The small parts of the client: schedule, work, histogram, log, target, connection shares."""

from __future__ import annotations

import os
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import HostUnfitError
from records.load import Load
from remote.client.clock import read_offset
from remote.client.histogram import Histogram
from remote.client.schedule import connections, due_times, share, workers_for
from remote.client.target import Target, request_bytes
from remote.client.wire_log import BEGUN, NO_STAMP, LogSize, WireLog
from remote.client.work import ClosedWork, Counter, open_work

SECOND_NS = 1_000_000_000


def test_constant_rate_is_exact_to_the_nanosecond() -> None:
    load = Load("constant", 8, rate_millihertz=3_000, requests=7)
    assert list(due_times(load, 0)) == [i * SECOND_NS // 3 for i in range(7)]


def test_bursts_come_together() -> None:
    load = Load("burst", 3, rate_millihertz=500, duration_ms=4_001)
    assert list(due_times(load, 0)) == [0, 0, 0] + [2 * SECOND_NS] * 3 + [4 * SECOND_NS] * 3


def test_poisson_is_a_function_of_the_seed_with_the_rate_asked_for() -> None:
    load = Load("poisson", 8, rate_millihertz=10_000, requests=20_000)
    times = list(due_times(load, 7))
    assert times == list(due_times(load, 7))
    assert times != list(due_times(load, 8))
    assert times == sorted(times)
    # 20,000 gaps of mean 0.1 s: the sum is within 4 standard errors
    assert abs(times[-1] / SECOND_NS - 2_000) < 4 * 0.1 * 20_000**0.5
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    assert abs(sum((g - mean) ** 2 for g in gaps) / len(gaps) / mean**2 - 1) < 0.1


def test_a_duration_ends_the_schedule() -> None:
    load = Load("constant", 1, rate_millihertz=1_000, duration_ms=3_000)
    assert list(due_times(load, 0)) == [0, SECOND_NS, 2 * SECOND_NS]


@given(st.integers(1, 500), st.integers(1, 9), st.sampled_from(["constant", "poisson", "burst"]))
def test_workers_divide_an_open_loop_without_loss(requests: int, workers: int, kind: str) -> None:
    load = Load(kind, 4, rate_millihertz=1_000, requests=requests)
    parts = [list(open_work(load, 3, workers, n)) for n in range(workers)]
    together = sorted(item for part in parts for item in part)
    assert together == list(enumerate(due_times(load, 3)))


@given(st.integers(1, 1000), st.integers(1, 16))
def test_connections_are_shared_out_whole(total: int, workers: int) -> None:
    parts = [share(total, workers, n) for n in range(workers)]
    assert sum(parts) == total
    assert max(parts) - min(parts) <= 1


def test_how_many_workers() -> None:
    assert [workers_for(n, 64) for n in (1, 64, 150, 151, 512)] == [1, 1, 1, 2, 4]
    assert workers_for(512, 1) == 1
    assert workers_for(64, 8, capacity=10_000) == 3
    assert workers_for(2, 8, capacity=1) == 2


def test_no_more_connections_than_requests() -> None:
    assert connections(Load("closed", 8, requests=3)) == 3
    assert connections(Load("closed", 8, duration_ms=1)) == 8


def test_processes_claim_each_index_once(tmp_path: Path) -> None:
    counter = Counter(tmp_path)
    children = []
    for number in range(4):
        pid = os.fork()
        if pid == 0:
            claimed = [counter.claim() for _ in range(2_000)]
            (tmp_path / str(number)).write_text(" ".join(map(str, claimed)))
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    counter.close()
    parts = [list(map(int, (tmp_path / str(n)).read_text().split())) for n in range(4)]
    assert all(part == sorted(part) for part in parts)
    assert sorted(i for part in parts for i in part) == list(range(8_000))


def test_a_budget_is_claimed_once(tmp_path: Path) -> None:
    counter = Counter(tmp_path)
    work = ClosedWork(Load("closed", 2, requests=3), counter)
    assert [work.claim() for _ in range(6)] == [0, 1, 2, -1, -1, -1]
    assert work.exhausted
    counter.close()


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=300), st.integers(1, 100))
def test_percentiles_are_nearest_rank_within_a_128th(values: list[int], percent: int) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    exact = sorted(values)[max(-(-percent * len(values) // 100), 1) - 1]
    assert exact <= histogram.percentile_ns(percent) <= exact + exact // 128
    assert histogram.max_ns == max(values)


def test_merged_histograms_are_one() -> None:
    one, other, both = Histogram(), Histogram(), Histogram()
    for value in range(1000):
        (one if value % 3 else other).add(value * 997)
        both.add(value * 997)
    one.merge(other)
    assert [one.percentile_ns(p) for p in (1, 50, 99)] == [
        both.percentile_ns(p) for p in (1, 50, 99)
    ]
    assert Histogram().percentile_ns(99) == -1


@pytest.mark.parametrize("kept", [0, 1, 100])
def test_a_log_gives_back_what_it_got_wherever_it_lies(tmp_path: Path, kept: int) -> None:
    log = WireLog(tmp_path, LogSize(1 << 17, kept))
    written = []
    for number in range(3_000):
        payload = b"%d" % number * (number % 40)
        log.append(BEGUN, number, payload)
        written.append((BEGUN, number, 0, payload))
    assert list(log.entries()) == written
    assert (log.spilled_bytes > 0) == (kept < 2)
    assert list(tmp_path.iterdir()) == []  # the spill file has no name to be left behind
    log.close()


def test_an_entry_without_stamp_reads_as_zero() -> None:
    assert len(NO_STAMP) == 16


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": "v1"},
        {"path": "/a b"},
        {"path": "/", "family": "ipx"},
        {"path": "/", "headers": (("a b", "c"),)},
        {"path": "/", "headers": (("a", "b\r\nevil: 1"),)},
    ],
)
def test_a_target_that_cannot_be_sent_to(wrong: dict[str, object]) -> None:
    with pytest.raises(HostUnfitError):
        Target(**wrong)  # type: ignore[arg-type]


def test_an_unknown_host_is_named() -> None:
    with pytest.raises(HostUnfitError, match=r"no-such-host\.invalid"):
        Target("/", host="no-such-host.invalid", port=1).address()


def test_the_bytes_of_a_request() -> None:
    target = Target("/v1/completions", host="::1", port=8000, family="ipv6", headers=(("A", "b"),))
    assert request_bytes(target.head(), 7, b"{}") == (
        b"POST /v1/completions HTTP/1.1\r\nHost: [::1]:8000\r\nAccept: text/event-stream\r\n"
        b"Content-Type: application/json\r\nA: b\r\nx-request-id: 7\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_clock_offsets_agree_within_their_brackets() -> None:
    readings = [read_offset() for _ in range(20)]
    assert all(reading.width_ns >= 0 for reading in readings)


def test_an_endless_schedule_is_lazy() -> None:
    load = Load("constant", 1, rate_millihertz=1_000, duration_ms=10**9)
    assert len(list(islice(due_times(load, 0), 10))) == 10
