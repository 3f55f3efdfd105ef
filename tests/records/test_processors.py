"""What processors are worth, from given times by the documented formulas."""

from __future__ import annotations

import pytest

from records.decode import from_object, to_object
from records.processors import Burst, Pair, Place, Processors

QUIET = (100, 102, 98)


def pair(one: int, other: int, one_both: int, other_both: int) -> Pair:
    return Pair(one, other, QUIET, (one_both,) * 3, QUIET, (other_both,) * 3)


def processors(together: dict[int, tuple[int, ...]], pairs: tuple[Pair, ...] = ()) -> Processors:
    places = tuple(Place(cpu, "absent", "0", "0") for cpu in together)
    alone = tuple(Burst(cpu, QUIET) for cpu in together)
    at_once = tuple(Burst(cpu, times) for cpu, times in together.items())
    return Processors((0, 1), (2,), 5_000, places, alone, at_once, pairs)


def test_each_does_time_alone_over_time_together_of_its_work() -> None:
    # one keeps its pace, one takes twice as long
    found = processors({0: (100, 100, 100), 1: (200, 200, 200)})
    assert found.worth == pytest.approx(1.5)
    assert found.alone_ns == (100, 100)


def test_what_others_take_by_turns_counts() -> None:
    # two programs by turns on one processor: pieces as fast as ever, but for the one that waited
    found = processors({0: (100, 100, 100, 500)})
    assert found.worth == pytest.approx(0.5)


def test_worth_of_more_than_were_timed_alone() -> None:
    many = processors(dict.fromkeys(range(4), (200, 200, 200)))
    some = Processors(
        many.engine, many.client, 1, many.places, many.alone[:2], many.together, many.pairs
    )
    assert some.worth == many.worth == pytest.approx(2.0)


def test_a_shared_core_slows_both_and_an_interruption_one() -> None:
    siblings, disturbed = pair(0, 2, 160, 150), pair(1, 2, 300, 101)
    assert siblings.slowdown == pytest.approx(1.5)
    assert siblings.is_shared
    assert disturbed.slowdown == pytest.approx(1.01)
    assert not disturbed.is_shared
    found = processors({0: QUIET, 1: QUIET}, (disturbed, siblings))
    assert found.shared_pairs == (siblings,)
    assert found.slowest_pair == siblings


def test_times_that_were_not_taken_tell_nothing() -> None:
    lost = Pair(0, 2, QUIET, (), QUIET, QUIET)
    assert lost.slowdown is None
    assert not lost.is_shared
    once = Pair(0, 2, QUIET, QUIET, QUIET, (100, 9_000))  # one interruption would decide
    assert once.slowdown is None
    found = processors({0: ()}, (lost, once))
    assert found.told_pairs == ()
    assert found.worth is None
    assert found.slowest_pair is None


def test_it_comes_back_from_a_record() -> None:
    found = processors({0: QUIET, 1: QUIET}, (pair(0, 2, 100, 100),))
    assert from_object(Processors, to_object(found)) == found
