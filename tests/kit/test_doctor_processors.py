"""Processors that slow each other down: read from given times, and asked of this machine."""

from __future__ import annotations

import fcntl
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kit.doctor.processors import judge, read, time_processors
from kit.doctor.topic import FAIL, PASS, WARN
from kit.hosts.host import NOT_FOUND, TIMED_OUT, Done, HostSpec
from kit.hosts.local import LocalHost
from records.decode import to_object
from records.processors import Burst, Pair, Processors

ROOT = Path(__file__).parents[2]
FAST, SLOW = (100, 101, 99), (160, 161, 159)


def host_of(
    cpus: int, siblings: set[tuple[int, int]], engine: tuple[int, ...], client: tuple[int, ...]
) -> Processors:
    """Times of a machine in which these pairs are threads of one core."""
    of_engine, of_client = engine or tuple(range(cpus)), client or tuple(range(cpus))
    beside = {cpu for pair in siblings if set(pair) <= set(of_engine) for cpu in pair}
    pairs = sorted({tuple(sorted((a, b))) for a in of_engine for b in of_client if a != b})
    return Processors(
        engine,
        client,
        5_000,
        (),
        tuple(Burst(cpu, FAST) for cpu in of_engine),
        tuple(Burst(cpu, SLOW if cpu in beside else FAST) for cpu in of_engine),
        tuple(
            Pair(a, b, FAST, SLOW if slow else FAST, FAST, SLOW if slow else FAST)
            for a, b in pairs
            for slow in [(a, b) in siblings]
        ),
    )


HALF_APART = {(0, 4), (1, 5), (2, 6), (3, 7)}


def test_whole_cores_pass() -> None:
    found = judge(host_of(8, set(), (), ()))
    assert (found.status, found.cause) == (PASS, "")
    assert "8 at once do the work of 8.0, none of 28 pairs" in found.found


def test_nothing_chosen_on_shared_cores_names_what_to_choose() -> None:
    found = judge(host_of(8, HALF_APART, (), ()))
    assert found.status == WARN
    assert "8 at once do the work of 5.0; 0 and 4, 1 and 5, 2 and 6 and 1 more" in found.found
    assert 'client_cpus = "3,7", engine_cpus = "0-2,4-6"' in found.remedy


def test_the_client_beside_the_engine_leaves_a_processor_idle() -> None:
    found = judge(host_of(8, HALF_APART, (0, 1, 2, 3, 4, 5, 6), (7,)))
    assert found.status == WARN
    assert "the client is in the measurement" in found.cause
    assert 'engine_cpus = "0-2,4-6"' in found.remedy
    moved = judge(host_of(8, HALF_APART, (0, 1, 2, 4, 5, 6), (7,)))
    assert "slow each other" not in moved.found


def test_few_cores_for_many_processors_where_no_pair_tells() -> None:
    whole = host_of(8, set(), (0, 1, 2, 3), (7,))
    found = judge(replace(whole, together=tuple(Burst(cpu, SLOW) for cpu in range(4))))
    assert found.status == WARN
    assert "4 at once do the work of 2.5" in found.found
    assert "neighbours" in found.cause


def test_all_on_one_core_leaves_no_choice() -> None:
    found = judge(host_of(2, {(0, 1)}, (), ()))
    assert found.status == WARN
    assert "rent a host" in found.remedy
    chosen = judge(host_of(2, {(0, 1)}, (0,), (1,)))
    assert "kit doctor" in chosen.remedy


@pytest.mark.parametrize(
    ("done", "status", "words"),
    [
        (Done(TIMED_OUT, "", "no end"), WARN, "busy"),
        (Done(NOT_FOUND, "", "not found"), WARN, "Python"),
        (Done(1, "", "processors not timed: processor 20: Invalid argument"), FAIL, "processor 20"),
        (Done(0, "welcome to the pod\n", ""), WARN, "welcome"),
        (Done(0, "", ""), WARN, "no list"),
        (Done(0, '{"engine": [0]}\n', ""), WARN, "no list"),
    ],
)
def test_an_answer_without_times(done: Done, status: str, words: str) -> None:
    found = read(done)
    assert found.status == status
    assert words in found.cause
    assert found.remedy


def test_a_banner_before_the_answer() -> None:
    times = json.dumps(to_object(host_of(4, set(), (), ())))
    assert read(Done(0, f"welcome\n{times}\n", "")).status == PASS


class Chosen(LocalHost):
    spec = HostSpec(engine_cpus=(0,), client_cpus=(4095,))


def test_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIT_HOST_LOCK", str(tmp_path / "lock"))
    found = time_processors(LocalHost(), ROOT)
    assert found.check == "processors"
    assert found.status in (PASS, WARN)
    assert "timed" not in found.found
    absent = time_processors(Chosen(), ROOT)
    assert (absent.status, "processor 4095" in absent.cause) == (FAIL, True)


def test_beside_a_run_nothing_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "lock"
    lock.write_text("run r1\n")
    monkeypatch.setenv("KIT_HOST_LOCK", str(lock))
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = time_processors(LocalHost(), ROOT)
    assert (found.status, found.found) == (PASS, "not timed: run r1 is under way here")
