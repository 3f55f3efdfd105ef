"""The processors of this machine, timed; and how pieces of two are told apart, on given times."""

from __future__ import annotations

import ast
import inspect
import os
import sys

import pytest

from records import canonical
from records.decode import from_object, to_object
from records.errors import HostUnfitError
from records.processors import Processors
from remote.host import bursts
from remote.host.processors import time_processors, time_where_allowed

MS = 1_000_000


def test_all_that_may_be_used() -> None:
    usable = sorted(os.sched_getaffinity(0))
    found = time_processors()
    assert (found.engine, found.client) == ((), ())
    assert [place.cpu for place in found.places] == usable
    assert [burst.cpu for burst in found.together] == usable
    assert all(time > 0 for burst in found.alone for time in burst.times_ns)
    assert {frozenset((p.one, p.other)) for p in found.pairs} <= {
        frozenset((one, other)) for one in usable for other in usable if one != other
    }
    assert found.worth is not None
    assert sorted(os.sched_getaffinity(0)) == usable
    assert from_object(Processors, canonical.decode(canonical.encode(to_object(found)))) == found


def test_the_ones_that_were_chosen() -> None:
    usable = sorted(os.sched_getaffinity(0))
    found = time_processors(usable[:1], usable[-1:])
    assert (found.engine, found.client) == (tuple(usable[:1]), tuple(usable[-1:]))
    assert [burst.cpu for burst in found.together] == usable[:1]
    told = [(pair.one, pair.other) for pair in found.pairs]
    assert told == ([(usable[0], usable[-1])] if len(usable) > 1 else [])


def test_a_processor_that_the_host_does_not_have() -> None:
    with pytest.raises(HostUnfitError, match="processor 4095"):
        time_processors([0], [4095])


def test_a_host_that_lets_nothing_be_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on without, and says so; not where processors were chosen."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    said: list[str] = []
    assert time_where_allowed((), (), said.append) is None
    assert "not timed" in said[0]
    with pytest.raises(HostUnfitError):
        time_where_allowed((0,), (), said.append)


def test_the_script_needs_nothing_of_this_project() -> None:
    tree = ast.parse(inspect.getsource(bursts))
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def pieces(begin_ms: int, end_ms: int, each_ms: int = 1) -> bursts.Pieces:
    return [(t * MS, (t + each_ms) * MS) for t in range(begin_ms, end_ms, each_ms)]


def test_pieces_beside_another_and_without() -> None:
    one, other = pieces(0, 12), pieces(6, 15)
    alone, both = bursts.apart(one, other)
    assert (len(alone), len(both)) == (3, 3)  # 3 to 6 ms, and 9 to 12: its first 3 are left out
    alone, both = bursts.apart(other, one)
    assert (len(alone), len(both)) == (3, 3)


def test_a_piece_across_the_border_counts_for_neither() -> None:
    one, other = pieces(0, 16, each_ms=4), pieces(9, 20)
    assert bursts.apart(one, other) == ([4 * MS], [4 * MS])


def test_likely_pairs_are_timed_first() -> None:
    places: list[dict[str, object]] = [
        {"cpu": cpu, "siblings": "0,3" if cpu in (0, 3) else str(cpu)} for cpu in range(8)
    ]
    found = bursts.in_order([0, 1, 2, 3], [3, 4, 5, 6, 7], places)
    assert found[0] == (0, 3)
    assert found.index((1, 5)) < found.index((1, 4))  # half of eight apart
    assert len(found) == len({frozenset(pair) for pair in found}) == 19
