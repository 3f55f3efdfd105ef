"""The schedule is a pure function of its text, the seed and the key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.errors import ScheduleError
from remote.reference.schedule import (
    Delay,
    Schedule,
    Tokens,
    acceptance_probability,
    draw,
    parse_delay,
    parse_duration_ns,
    parse_tokens,
)

DELAYS = [
    "20ms",
    "constant:20ms",
    "uniform:10ms:30ms",
    "normal:20ms:5ms",
    "normal:20ms:50ms:5ms:30ms",
    "exponential:20ms",
    "lockstep:20ms",
    "cycle:10ms:20ms:30ms",
]
PINNED = ([100000000, 19143198, 13071321, 24461486, 29167900, 17195226], [1, 1, 4, 1, 3, 2])
TOKENS = ["1", "4", "cycle:1,3,1", "accept:4:3.2", "accept:4:1", "accept:4:5"]


def a_schedule(gap: str = "20ms", tokens: str = "1", seed: int = 0) -> Schedule:
    return Schedule(parse_delay("100ms"), parse_delay(gap), parse_tokens(tokens), seed)


@pytest.mark.parametrize(
    ("text", "ns"),
    [("20ms", 20_000_000), ("1.5s", 1_500_000_000), ("7ns", 7), ("0.25us", 250), (12, 12)],
)
def test_duration_is_exact(text: str | int, ns: int) -> None:
    assert parse_duration_ns(text) == ns


@pytest.mark.parametrize("text", ["20", "-1ms", "ms", "1.ms", "", "1e3ms", True, -1])
def test_duration_without_unit_or_sense_is_refused(text: str | int) -> None:
    with pytest.raises(ScheduleError):
        parse_duration_ns(text)


@pytest.mark.parametrize(
    "text", ["gauss:1ms", "uniform:1ms", "uniform:3ms:1ms", "lockstep:0ns", "constant:1ms:2ms"]
)
def test_bad_delay_is_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse_delay(text)
    assert caught.value.remedy


@pytest.mark.parametrize("text", ["0", "cycle:1,0", "accept:4:6", "accept:4", "x", ""])
def test_bad_token_rule_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse_tokens(text)


def test_json_lists_are_cycles() -> None:
    assert parse_delay([1, "2ms"]) == Delay("cycle", (1, 2_000_000))
    assert parse_tokens([1, 3, 1]) == Tokens((1, 3, 1))


@given(st.sampled_from(DELAYS), st.sampled_from(TOKENS), st.integers(), st.integers(1, 300))
def test_same_seed_and_key_give_the_same_chunks(gap: str, rule: str, seed: int, n: int) -> None:
    first = draw(a_schedule(gap, rule, seed), "request-1", n)
    assert first == draw(a_schedule(gap, rule, seed), "request-1", n)
    assert sum(first.tokens) == n
    assert len(first.waits_ns) == len(first.tokens) == len(first.accepted) + 1
    assert min(first.waits_ns) >= 0
    # Only the last step may have accepted more than it could still say.
    for tokens, accepted in list(zip(first.tokens[1:], first.accepted, strict=True))[:-1]:
        assert tokens == accepted + 1


def test_other_seed_or_key_gives_other_chunks() -> None:
    base = a_schedule("uniform:10ms:30ms")
    other_seed = a_schedule("uniform:10ms:30ms", seed=1)
    assert draw(base, "a", 50) != draw(base, "b", 50)
    assert draw(base, "a", 50) != draw(other_seed, "a", 50)


def test_drawn_values_are_pinned() -> None:
    # A change of these numbers breaks the comparison of runs with one seed.
    drawn = draw(a_schedule("uniform:10ms:30ms", "accept:4:3.2"), "a", 12)
    assert (list(drawn.waits_ns), list(drawn.tokens)) == PINNED


def test_the_worked_example() -> None:
    drawn = draw(a_schedule("40ms", "cycle:1,3,1"), "x", 5)
    assert list(drawn.tokens) == [1, 3, 1]
    assert list(drawn.waits_ns) == [100_000_000, 40_000_000, 40_000_000]
    assert list(drawn.accepted) == [2, 0]


def test_bounds_of_the_clipped_normal_hold() -> None:
    waits = draw(a_schedule("normal:20ms:50ms:5ms:30ms"), "x", 2000).waits_ns[1:]
    assert min(waits) == 5_000_000
    assert max(waits) == 30_000_000


@given(st.integers(1, 8), st.floats(0.0, 1.0))
def test_acceptance_probability_gives_the_mean(k: int, share: float) -> None:
    mean = 1.0 + share * k
    p = acceptance_probability(k, mean)
    assert 1.0 + sum(p**i for i in range(1, k + 1)) == pytest.approx(mean, abs=1e-6)


def test_mean_acceptance_is_near_the_one_asked_for() -> None:
    drawn = draw(a_schedule(tokens="accept:4:3.2"), "x", 60_000)
    assert 1 + sum(drawn.accepted) / len(drawn.accepted) == pytest.approx(3.2, abs=0.05)
    assert max(drawn.accepted) == 4


@given(st.integers(0, 10**18))
def test_lockstep_streams_share_the_beat(start_ns: int) -> None:
    drawn = draw(a_schedule("lockstep:20ms"), "x", 3).aligned(start_ns)
    first = start_ns + drawn.waits_ns[0]
    assert first % 20_000_000 == 0
    assert 100_000_000 <= drawn.waits_ns[0] < 120_000_000
    assert list(drawn.waits_ns[1:]) == [20_000_000, 20_000_000]
